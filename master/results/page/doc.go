// Package page makes web pages of results: one file that needs nothing else, no network
// and no other file, for any browser.
//
//	p := &page.Page{Title: "car", Sections: []page.Section{{Title: "Results", Groups: []page.Group{
//		{Title: "chassis", Plots: []page.Plot{{Name: "chassis.v", T: t, V: v}}},
//	}}}}
//	err := page.Write(w, p)
//
// Plots are static pictures (SVG), which a script of the page lets the reader zoom into
// and read values from; without the script they stay. Names and texts may come from
// files of anybody: everything is escaped, and the page's content security policy lets
// no other script run and no request leave it.
//
// [Live] serves the page of a run while it goes on, and lets the reader pause it, step it
// and stop it.
package page
