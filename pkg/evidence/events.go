package evidence

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EventTime is when an event was last seen. Old-style events carry
// lastTimestamp, new-style ones eventTime and a series, and what neither has
// set still has its creation.
func EventTime(ev *corev1.Event) time.Time {
	if ev.Series != nil && !ev.Series.LastObservedTime.IsZero() {
		return ev.Series.LastObservedTime.Time
	}
	switch {
	case !ev.LastTimestamp.IsZero():
		return ev.LastTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	}
	return ev.CreationTimestamp.Time
}

// EventFirstTime is when an event was first seen.
func EventFirstTime(ev *corev1.Event) time.Time {
	switch {
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	case !ev.CreationTimestamp.IsZero():
		return ev.CreationTimestamp.Time
	}
	return EventTime(ev)
}

// EventCount is how often an event was seen; at least once, as it is there.
func EventCount(ev *corev1.Event) int {
	if ev.Series != nil && ev.Series.Count > 0 {
		return int(ev.Series.Count)
	}
	return max(1, int(ev.Count))
}

// EventComponent is who reported an event. The two fields mean the same; old
// recorders fill the first alone.
func EventComponent(ev *corev1.Event) string {
	if ev.Source.Component != "" {
		return ev.Source.Component
	}
	return ev.ReportingController
}
