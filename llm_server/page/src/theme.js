// Loaded before the page is drawn, so that it does not flash in the other theme.
document.documentElement.dataset.theme = localStorage.getItem("mote.theme") ?? "";
