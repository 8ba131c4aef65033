module github.com/macrostep/macrostep

go 1.26.0

require github.com/beevik/etree v1.8.1
