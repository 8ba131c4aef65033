// Package page makes the web page of a study: one file for any browser that needs no network and no other file.
//
//	err := page.Write(w, &page.Page{Title: "tires", Plan: plan, Report: study.Summarise(plan, findings),
//		Rows: findings.Rows, Total: 2000, State: page.Complete})
//
// Tables and charts are static. The scatter matrix is drawn by a script.
package page
