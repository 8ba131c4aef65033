//go:build long

package analyze

import "testing"

func TestErrorOfOutputsThatFeedNobody(t *testing.T) { testErrorOfOutputsThatFeedNobody(t) }
func TestRunsOfSaturation(t *testing.T)             { testRunsOfSaturation(t) }
func TestSettled(t *testing.T)                      { testSettled(t) }
func TestSettledRates(t *testing.T)                 { testSettledRates(t) }
func TestManySubsystems(t *testing.T)               { testManySubsystems(t) }
func TestCorrectedForecast(t *testing.T)            { testCorrectedForecast(t) }
func TestRatesUnknown(t *testing.T)                 { testRatesUnknown(t) }
