package canary

import "time"

const (
	// skewTolerated is what a request's duration and times without fractions
	// make of two clocks that agree.
	skewTolerated = 3 * time.Second
	// skewTold is from where on the user is told.
	skewTold = 30 * time.Second
)

// setSkew compares this machine's clock with the API server's. What happened on
// the cluster is timed there, so ages and graces must be taken by its clock: a
// laptop that is minutes ahead would take a young daemon for an old one.
func (r *Retest) setSkew(asked, server time.Time) {
	if server.IsZero() {
		return
	}
	r.skew = server.Sub(asked)
	if r.skew.Abs() < skewTolerated {
		r.skew = 0
	}
	if r.skew.Abs() >= skewTold {
		r.notef(StepCheck, "this machine's clock is %s off the API server's: ages are taken by the server's", r.skew.Abs().Round(time.Second))
	}
}

// clusterNow is the present time by the cluster's clock.
func (r *Retest) clusterNow() time.Time { return r.now().Add(r.skew) }
