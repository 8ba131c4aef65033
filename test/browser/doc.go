// Package browser holds the tests of web pages in headless Chromium. They are a module of their own and run on their
// own: cd test/browser && go test .
//
// They need Linux, and take the browser that $CHROMIUM names, else chromium, chromium-browser or google-chrome, and
// fail without one (Debian: apt-get install chromium). With -screenshots DIR they leave pictures of the pages to look
// at.
package browser
