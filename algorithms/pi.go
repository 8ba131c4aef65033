package algorithms

import "math"

// piController is the controller (15) of sadjina. With the indicators ε of the last two steps, the
// ratio of the step sizes is
//
//	α ε_{n+1}^{−kI−kP} ε_n^{kP},  kI = 0.3/(m+gain), kP = 0.4/(m+gain) at order m.
type piController struct {
	safety float64  // α
	gain   int      // 1 for the predictor/corrector, 2 for ECCO
	kI, kP *float64 // nil = from the order
}

func newPI(k *Control, gain int) *piController {
	return &piController{k.Safety, gain, k.GainI, k.GainP}
}

func (c *piController) ratio(order int, now, before float64) float64 {
	kI, kP := 0.3/float64(order+c.gain), 0.4/float64(order+c.gain)
	if c.kI != nil {
		kI = *c.kI
	}
	if c.kP != nil {
		kP = *c.kP
	}
	return c.safety * math.Pow(now, -kI-kP) * math.Pow(before, kP)
}
