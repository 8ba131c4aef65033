package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/macrostep/macrostep/master/metrics"
)

const flagMetrics = "metrics"

// listenMetrics takes the address of --metrics: HOST:PORT, or PORT on this machine only.
func listenMetrics(address string) (net.Listener, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w; give HOST:PORT, or a PORT of this machine that is free (0: any)", flagMetrics, err)
	}
	return l, nil
}

// serveMetrics serves the metrics of a run until stop is called.
func serveMetrics(l net.Listener, m *metrics.Metrics) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", m)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// It ends by Shutdown; who asks meanwhile sees any other end.
		_ = server.Serve(l)
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			_ = server.Close()
		}
		<-done
	}
}
