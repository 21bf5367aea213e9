package rollback

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

func TestUserOf(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		annotations map[string]string
		want        []string
		unreadable  bool
	}{
		"no annotation":           {},
		"an empty one":            {annotations: map[string]string{nadv1.NetworkAttachmentAnnot: " "}},
		"short form":              {annotations: map[string]string{nadv1.NetworkAttachmentAnnot: "vlan50"}, want: []string{"media/vlan50"}},
		"with a namespace":        {annotations: map[string]string{nadv1.NetworkAttachmentAnnot: "downloads/vlan50@net1, other"}, want: []string{"downloads/vlan50", "media/other"}},
		"JSON":                    {annotations: map[string]string{nadv1.NetworkAttachmentAnnot: `[{"name":"vlan50","namespace":"downloads"}]`}, want: []string{"downloads/vlan50"}},
		"JSON without namespace":  {annotations: map[string]string{nadv1.NetworkAttachmentAnnot: `[{"name":"vlan50"}]`}, want: []string{"media/vlan50"}},
		"in the primary's place":  {annotations: map[string]string{multus.DefaultNetworkAnnot: "kube-system/vlan50"}, want: []string{"kube-system/vlan50"}},
		"what Multus cannot read": {annotations: map[string]string{nadv1.NetworkAttachmentAnnot: `[{"name":`}, unreadable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, ok := userOf(Object{Kind: kindNamed("Pod"), Namespace: "media", Name: "box"}, row.annotations)
			if diff := cmp.Diff(row.want, user.Networks); diff != "" {
				t.Error(diff)
			}
			if (user.Unreadable != "") != row.unreadable || ok != (len(row.want) > 0 || row.unreadable) {
				t.Errorf("unreadable %q, ok %t", user.Unreadable, ok)
			}
		})
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	owned := func(o, by Object) User {
		o.Owner = &metav1.OwnerReference{UID: by.UID, Kind: by.Kind.Name, Name: by.Name}
		return User{Object: o, Networks: []string{"downloads/vlan50"}}
	}
	deployment, set, pod := object("Deployment", "media", "proxy"), object("ReplicaSet", "media", "proxy-1"), object("Pod", "media", "proxy-1-a")
	above := owners{set.UID: {UID: deployment.UID, Kind: "Deployment", Name: "proxy"}}
	chain := []User{{Object: deployment}, owned(set, deployment), owned(pod, set)}
	canary := object("Pod", "downloads", "vlan50-canary")
	for name, row := range map[string]struct {
		users   []User
		planned []Object
		want    []string
	}{
		"a controller is told once for all":          {users: chain, want: []string{"Deployment media/proxy"}},
		"a planned controller covers its Pods":       {users: chain, planned: []Object{deployment}},
		"a planned ReplicaSet leaves its Deployment": {users: chain, planned: []Object{set}, want: []string{"Deployment media/proxy"}},
		"the Pod of an unknown controller":           {users: []User{owned(pod, object("Rollout", "media", "proxy"))}, want: []string{"Pod media/proxy-1-a"}},
		"the canary itself":                          {users: []User{{Object: canary}}, planned: []Object{canary}},
		"a namesake of what is planned and gone":     {users: []User{{Object: canary}}, planned: []Object{{Kind: canary.Kind, Namespace: canary.Namespace, Name: canary.Name}}, want: []string{"Pod downloads/vlan50-canary"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, user := range strangers(row.users, row.planned, above) {
				got = append(got, user.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
