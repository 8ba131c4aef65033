//go:build long

package test

import "testing"

func TestLimitedAddressSpace(t *testing.T)      { testLimitedAddressSpace(t) }
func TestProgramReplacedMeanwhile(t *testing.T) { testProgramReplacedMeanwhile(t) }
func TestRestartAnywhere(t *testing.T)          { testRestartAnywhere(t) }
func TestRestartLimit(t *testing.T)             { testRestartLimit(t) }
func TestResumeAfterFullDisk(t *testing.T)      { testResumeAfterFullDisk(t) }
func TestSoak(t *testing.T)                     { testSoak(t) }
