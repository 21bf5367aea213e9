package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// ErrNoDaemonSet says that all DaemonSets were looked at that could be Multus',
// and none is.
var ErrNoDaemonSet = errors.New("no Multus DaemonSet")

// ErrLookUp is wrapped where the default DaemonSet is not there and another could
// not be looked for.
var ErrLookUp = errors.New("looking for another")

// absent says so in the words of its place.
type absent string

func (a absent) Error() string { return string(a) }

func (a absent) Is(err error) bool { return err == ErrNoDaemonSet }

// FindDaemonSet gives the Multus DaemonSet. One that the user named must be
// there. The default one is looked for by its labels and image where it is not,
// and found says so; several candidates are an error that lists them.
func FindDaemonSet(ctx context.Context, client appsv1client.DaemonSetsGetter, setting string) (ref evidence.Ref, found string, err error) {
	explicit := setting != ""
	if !explicit {
		setting = DefaultDaemonSet
	}
	ref, err = ParseRef(setting, "kube-system")
	if err != nil {
		return ref, "", fmt.Errorf("DaemonSet %w", err)
	}
	_, err = client.DaemonSets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return ref, "", nil
	case !apierrors.IsNotFound(err):
		return ref, "", fmt.Errorf("reading DaemonSet %s: %w", ref, err)
	case explicit:
		return ref, "", absent(fmt.Sprintf("there is no DaemonSet %s: name the Multus one with --daemonset NAMESPACE/NAME", ref))
	}
	return lookUp(ctx, client, ref)
}

func lookUp(ctx context.Context, client appsv1client.DaemonSetsGetter, missing evidence.Ref) (evidence.Ref, string, error) {
	list, err := client.DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	everywhere := err == nil
	if apierrors.IsForbidden(err) {
		list, err = client.DaemonSets(missing.Namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return missing, "", fmt.Errorf("there is no DaemonSet %s, and %w: %w", missing, ErrLookUp, err)
	}
	var refs []string
	var candidates []evidence.Ref
	for i := range list.Items {
		if ds := &list.Items[i]; evidence.IsMultus(ds) {
			candidates = append(candidates, evidence.Ref{Namespace: ds.Namespace, Name: ds.Name})
			refs = append(refs, ds.Namespace+"/"+ds.Name)
		}
	}
	switch len(candidates) {
	case 0:
		none := absent(fmt.Sprintf("there is no DaemonSet %s and none that looks like Multus: name it with --daemonset NAMESPACE/NAME", missing))
		if !everywhere {
			return missing, "", errors.New(string(none))
		}
		return missing, "", none
	case 1:
		return candidates[0], fmt.Sprintf("there is no DaemonSet %s; taking %s, which runs Multus", missing, candidates[0]), nil
	}
	slices.Sort(refs)
	return missing, "", fmt.Errorf("there is no DaemonSet %s and several look like Multus (%s): name one with --daemonset NAMESPACE/NAME", missing, strings.Join(refs, ", "))
}
