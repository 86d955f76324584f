// Elements, and the theme.
const $ = (id) => document.getElementById(id);

// An element with attributes and children, which are elements or text.
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") element.className = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

const themes = ["automatic", "light", "dark"];
let theme = "automatic";
function showTheme() {
  if (theme === "automatic") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText($("theme"), `Theme: ${theme}`);
}
// A browser may deny pages their storage.
try { theme = localStorage.getItem("sluice-theme") || theme; } catch {}
if (!themes.includes(theme)) theme = "automatic";
showTheme();
$("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  try { localStorage.setItem("sluice-theme", theme); } catch {}
  showTheme();
});
