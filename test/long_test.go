//go:build long

package test

import "testing"

func TestChainAgainstReference(t *testing.T)         { testChainAgainstReference(t) }
func TestCorrectorBlackbox(t *testing.T)             { testCorrectorBlackbox(t) }
func TestCorrectorNonlinear(t *testing.T)            { testCorrectorNonlinear(t) }
func TestCorrectorPoint(t *testing.T)                { testCorrectorPoint(t) }
func TestCorrectorVariableSteps(t *testing.T)        { testCorrectorVariableSteps(t) }
func TestEnergyOfSlowSides(t *testing.T)             { testEnergyOfSlowSides(t) }
func TestEnergyAllocations(t *testing.T)             { testEnergyAllocations(t) }
func TestForeignCheckpoints(t *testing.T)            { testForeignCheckpoints(t) }
func TestInitialisationWithoutSolution(t *testing.T) { testInitialisationWithoutSolution(t) }

func TestMeyerChain(t *testing.T)                { testMeyerChain(t) }
func TestMeyerContactOscillator(t *testing.T)    { testMeyerContactOscillator(t) }
func TestRateOfTheAnnotation(t *testing.T)       { testRateOfTheAnnotation(t) }
func TestResumeScenario(t *testing.T)            { testResumeScenario(t) }
func TestRodriguezCrane(t *testing.T)            { testRodriguezCrane(t) }
func TestRodriguezCraneCorrection(t *testing.T)  { testRodriguezCraneCorrection(t) }
func TestRodriguezCraneWarned(t *testing.T)      { testRodriguezCraneWarned(t) }
func TestRodriguezHarm(t *testing.T)             { testRodriguezHarm(t) }
func TestRodriguezInTurn(t *testing.T)           { testRodriguezInTurn(t) }
func TestRodriguezPendula(t *testing.T)          { testRodriguezPendula(t) }
func TestRodriguezUncorrected(t *testing.T)      { testRodriguezUncorrected(t) }
func TestSadjinaConstantSteps(t *testing.T)      { testSadjinaConstantSteps(t) }
func TestSadjinaFigure4(t *testing.T)            { testSadjinaFigure4(t) }
func TestSadjinaPredictorCorrector(t *testing.T) { testSadjinaPredictorCorrector(t) }
func TestSadjinaStabilityLimit(t *testing.T)     { testSadjinaStabilityLimit(t) }
func TestUncommittedSteps(t *testing.T)          { testUncommittedSteps(t) }
func TestValidateStopsRuns(t *testing.T)         { testValidateStopsRuns(t) }
