package verdict

func passes() []Entry {
	entries := []Entry{
		{
			Cause:   OK,
			Summary: "Attached, addressed, guard and main container done.",
			Next:    "nothing: the network works for this canary",
		},
		{
			Cause:   OKNoMultusEvents,
			Summary: "No event of Multus is left, but the network-status annotation and the containers prove the attachment.",
			Next:    "nothing for the network; if events are missing right after an attempt, allow Multus to create, patch and update events",
		},
		{
			Cause:   NetworkStatusPartial,
			Summary: "The AddedInterface event and the guard prove the attachment; the network-status annotation lists fewer networks.",
			Next:    "nothing for the network; who reads the network-status annotation will miss <network>: update Multus",
		},
		{
			Cause:   NetworkStatusAbsent,
			Summary: "The AddedInterface event and the guard prove the attachment; there is no network-status annotation.",
			Next:    "nothing for the network; if something reads network-status, look for what removes the annotation",
		},
		{
			Cause:   LegacyAnnotationKey,
			Summary: "Only the old plural annotation k8s.v1.cni.cncf.io/networks-status is set.",
			Next:    "nothing for the network; Multus is old (v3): plan its update",
		},
		{
			Cause:   EventsIncomplete,
			Summary: "Events were dropped after a burst; the statuses prove the attachment.",
			Next:    "nothing: trust the container statuses; missing Created and Started events are normal after a burst",
		},
		{
			Cause:   LateSuccess,
			Summary: "Earlier attempts of this Pod's sandbox failed, the last one attached and finished.",
			Next:    "nothing now; if the early failures come back, look at the events listed",
		},
	}
	return judged(Pass, AtOnce, entries)
}

// judged gives a group of entries its common outcome and settling, where an
// entry has none of its own.
func judged(o Outcome, s Settling, entries []Entry) []Entry {
	for i := range entries {
		if entries[i].Outcome == "" {
			entries[i].Outcome = o
		}
		if entries[i].Settles == 0 {
			entries[i].Settles = s
		}
	}
	return entries
}
