package cluster

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestClock(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		date     string
		answered time.Duration
		want     time.Duration
	}{
		"the same":                   {asked.Format(http.TimeFormat), 0, 0},
		"within what is tolerated":   {asked.Add(-2 * time.Second).Format(http.TimeFormat), time.Second, 0},
		"this machine is ahead":      {asked.Add(-5 * time.Minute).Format(http.TimeFormat), 0, -5 * time.Minute},
		"this machine is behind":     {asked.Add(5 * time.Minute).Format(http.TimeFormat), 0, 5 * time.Minute},
		"an answer that took long":   {asked.Add(20 * time.Second).Format(http.TimeFormat), 20 * time.Second, 0},
		"no date, or one of nothing": {"soon", 0, 0},
	} {
		var clock Clock
		clock.hear(row.date, asked, asked.Add(row.answered))
		if got := clock.Offset(); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

// The clients hear the time of each answer, also of one that is a refusal.
func TestClockOfTheClients(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	clients, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if offset := clients.Clock.Offset(); offset != 0 {
		t.Errorf("nothing was answered yet, and the offset is %s", offset)
	}
	if _, err := clients.Core.Pods("x").Get(t.Context(), "y", metav1.GetOptions{}); err == nil {
		t.Fatal("it was no refusal")
	}
	if offset := clients.Clock.Offset(); offset < 59*time.Minute || offset > 61*time.Minute {
		t.Errorf("the offset is %s, want an hour", offset)
	}
	if ahead := time.Until(clients.Clock.Now()); ahead < 59*time.Minute {
		t.Errorf("now is only %s ahead", ahead)
	}
}
