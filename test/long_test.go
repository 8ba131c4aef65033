//go:build long

package test

import "testing"

func TestAnalyzeBlackboxes(t *testing.T)            { testAnalyzeBlackboxes(t) }
func TestAnalyzeEnergyCorrection(t *testing.T)      { testAnalyzeEnergyCorrection(t) }
func TestAnalyzeErrors(t *testing.T)                { testAnalyzeErrors(t) }
func TestAnalyzeHaid(t *testing.T)                  { testAnalyzeHaid(t) }
func TestAnalyzeLater(t *testing.T)                 { testAnalyzeLater(t) }
func TestAnalyzeOneStepBelowReference(t *testing.T) { testAnalyzeOneStepBelowReference(t) }
func TestAnalyzeOwn(t *testing.T)                   { testAnalyzeOwn(t) }
func TestAnalyzeRates(t *testing.T)                 { testAnalyzeRates(t) }
func TestAnalyzeRecommends(t *testing.T)            { testAnalyzeRecommends(t) }
func TestAnalyzeRuns(t *testing.T)                  { testAnalyzeRuns(t) }
func TestAnalyzeVarying(t *testing.T)               { testAnalyzeVarying(t) }
func TestChainAgainstReference(t *testing.T)        { testChainAgainstReference(t) }
func TestCorrectorBlackbox(t *testing.T)            { testCorrectorBlackbox(t) }
func TestCorrectorNonlinear(t *testing.T)           { testCorrectorNonlinear(t) }
func TestEnergyOfSlowSides(t *testing.T)            { testEnergyOfSlowSides(t) }
func TestLimits(t *testing.T)                       { testLimits(t) }
func TestMeyerChain(t *testing.T)                   { testMeyerChain(t) }
func TestPendingIsTold(t *testing.T)                { testPendingIsTold(t) }
func TestOSPFunctionsInLoops(t *testing.T)          { testOSPFunctionsInLoops(t) }
func TestResumeRepeatedly(t *testing.T)             { testResumeRepeatedly(t) }
func TestRecommendations(t *testing.T)              { testRecommendations(t) }
func TestRodriguezPendula(t *testing.T)             { testRodriguezPendula(t) }
func TestSadjinaFigure4(t *testing.T)               { testSadjinaFigure4(t) }
func TestSadjinaPredictorCorrector(t *testing.T)    { testSadjinaPredictorCorrector(t) }
func TestSadjinaStabilityLimit(t *testing.T)        { testSadjinaStabilityLimit(t) }
func TestSharesOfTwoRates(t *testing.T)             { testSharesOfTwoRates(t) }
func TestAnalyzeUnknown(t *testing.T)               { testAnalyzeUnknown(t) }
func TestAnalyzeQuarterCars(t *testing.T)           { testAnalyzeQuarterCars(t) }
func TestCorrectorPoint(t *testing.T)               { testCorrectorPoint(t) }
func TestForeignCheckpoints(t *testing.T)           { testForeignCheckpoints(t) }
func TestProcessIsPutBackOnTheWay(t *testing.T)     { testProcessIsPutBackOnTheWay(t) }
