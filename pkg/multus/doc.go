// Package multus reads what Multus, CNI and kubelet write: annotations, network
// configurations, event messages, daemon logs and the host paths of a
// DaemonSet. It is pure; every string it is given may be hostile.
package multus
