module github.com/macrostep/macrostep

go 1.26.0
