package canary

import (
	"testing"
	"time"
)

func TestClockOfTheCluster(t *testing.T) {
	local := time.Date(2026, 3, 3, 9, 0, 0, 500_000_000, time.UTC)
	for _, row := range []struct {
		name   string
		server time.Time
		want   time.Duration
		told   bool
	}{
		{"the clocks agree, the server's has whole seconds only", local.Truncate(time.Second), 0, false},
		{"a server that gives no time", time.Time{}, 0, false},
		{"this machine is seven minutes ahead", local.Add(-7 * time.Minute), -7 * time.Minute, true},
		{"this machine is ten seconds behind", local.Add(10 * time.Second), 10 * time.Second, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			told := false
			r := &Retest{Now: func() time.Time { return local }, Notify: func(Note) { told = true }}
			r.setSkew(local, row.server)
			if got := r.clusterNow().Sub(local); got != row.want || told != row.told {
				t.Errorf("the cluster's clock is %s ahead, told %v; want %s, %v", got, told, row.want, row.told)
			}
		})
	}
}
