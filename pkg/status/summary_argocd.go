package status

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
)

// argoStatus tells what Argo CD says, and in words what that is worth. Its
// marks never say that anything is proven.
func argoStatus(d *Data) v1alpha1.ArgoCDStatus {
	var status v1alpha1.ArgoCDStatus
	if !d.Argo.Known {
		return status // the gap says why
	}
	status.Installed = new(d.Argo.Installed)
	switch {
	case !d.Argo.Installed:
		status.Lines = []v1alpha1.StatusLine{line(v1alpha1.MarkNone, "Argo CD", "is not installed: there is no kind Application")}
	case len(d.Argo.Applications) == 0 && partly(d):
		status.Lines = []v1alpha1.StatusLine{line(v1alpha1.MarkUnknown, "Argo CD", "no Application that can be read owns these objects")}
	case len(d.Argo.Applications) == 0:
		status.Lines = []v1alpha1.StatusLine{line(v1alpha1.MarkNone, "Argo CD", "no Application owns these objects")}
	}
	for i := range d.Argo.Applications {
		application, lines := applicationStatus(d, &d.Argo.Applications[i])
		status.Applications = append(status.Applications, application)
		status.Lines = append(status.Lines, lines...)
	}
	return status
}

// partly reports whether only a part of the Applications was read.
func partly(d *Data) bool {
	return slices.ContainsFunc(d.Gaps, func(g Gap) bool { return g.Section == v1alpha1.SectionArgoCD })
}

func applicationStatus(d *Data, a *argocd.Application) (v1alpha1.ArgoApplication, []v1alpha1.StatusLine) {
	automated, selfHeal, prune := a.Policy()
	status := v1alpha1.ArgoApplication{
		Namespace: a.Metadata.Namespace, Name: a.Metadata.Name,
		Sync: a.Status.Sync.Status, Health: a.Status.Health.Status,
		Automated: automated, SelfHeal: selfHeal, Prune: prune,
	}
	ownsCanary := false
	for _, claim := range d.Argo.Claims {
		if a.Owns(claim) {
			status.Owns = append(status.Owns, claim.String())
			ownsCanary = ownsCanary || claim.Kind == "Pod"
		}
	}
	slices.Sort(status.Owns)
	status.Worth = a.Worth(ownsCanary)
	lines := []v1alpha1.StatusLine{line(v1alpha1.MarkNone, "state", "Application %s/%s: %s, %s; automated sync %s, self-heal %s; owns %s",
		status.Namespace, status.Name, cmp.Or(status.Sync, "no sync status"), cmp.Or(status.Health, "no health"),
		onOff(automated), onOff(selfHeal), strings.Join(status.Owns, ", "))}
	for i, words := range status.Worth {
		subject := "worth"
		if i > 0 {
			subject = ""
		}
		lines = append(lines, line(v1alpha1.MarkNone, subject, "%s", words))
	}
	return status, lines
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
