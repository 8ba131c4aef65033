package study

import (
	"maps"
	"slices"

	"github.com/macrostep/macrostep/fmi/diag"
)

// What others call designs, quantities, values of factors and keys of a file.
var (
	designWords = diag.Words{
		"sobol": DesignSaltelli, "sobolindices": DesignSaltelli, "sobolindex": DesignSaltelli, "variance": DesignSaltelli, "sensitivity": DesignSaltelli,
		"screening": DesignMorris, "elementaryeffects": DesignMorris,
		"lhs": DesignLatinHypercube, "latin": DesignLatinHypercube, "random": DesignMonteCarlo, "mc": DesignMonteCarlo,
		"fullfactorial": DesignGrid, "factorial": DesignGrid, "full": DesignGrid, "all": DesignGrid, "oat": DesignOneAtATime, "ofat": DesignOneAtATime,
		"quasirandom": DesignHalton, "csv": DesignTable, "file": DesignTable,
	}
	quantityWords = diag.Words{
		"max": "maximum", "peak": "maximum", "min": "minimum", "argmax": "time-of-maximum", "argmin": "time-of-minimum",
		"average": "mean", "avg": "mean", "last": "final", "end": "final", "sum": "integral", "at": "value",
		"rmse": "deviation", "error": "deviation", "difference": "deviation", "fit": "deviation", "first": "crossing",
	}
	factorWords = diag.Words{
		"range": "linear", "linspace": "linear", "lin": "linear", "logspace": "log", "logarithmic": "log", "geometric": "log",
		"gauss": "normal", "gaussian": "normal", "random": "uniform", "triangle": "triangular", "table": "column", "file": "column",
	}
	planWords = diag.Words{
		"parameters": "vary", "factors": "vary", "outputs": "collect", "quantities": "collect", "results": "collect", "optimize": "optimise",
		"calibrate": "optimise", "fit": "optimise", "settings": "run", "model": "system", "n": "samples", "timeout": "time-limit",
	}
)

func quantityKinds() []string {
	return append(slices.Sorted(maps.Keys(reductions)), "value", "crossing", "deviation")
}

func factorKinds() []string { return append(slices.Sorted(maps.Keys(distributions)), "column") }
