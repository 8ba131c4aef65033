package app

import (
	"net/http"

	"github.com/macrostep/macrostep/master/metrics"
)

const flagMetrics = "metrics"

// listenMetrics listens at the address of --metrics.
func listenMetrics(address string) (*service, error) { return listen(flagMetrics, address, "/metrics") }

// serveMetrics serves the metrics of a run until stop is called.
func serveMetrics(s *service, m *metrics.Metrics) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", m)
	s.serve(s.guard.Handler(mux))
	return s.stop
}
