// Elements, and the theme.
const $ = (id) => document.getElementById(id);

// The only way for text onto the page: characters that control a terminal or reorder text are escaped, as in the output of sluice.
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
const visible = (text) => String(text).replace(controls, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
const visibleAttributes = new Set(["alt", "aria-label", "placeholder", "title"]);
const visibleValue = (name, value) => (visibleAttributes.has(name) ? visible(value) : value);

// An element with attributes and children, which are elements or text.
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") element.className = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, visibleValue(key, value));
  }
  element.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

// Gives an element these children, and keeps those that are the same, and with them the focus, a selection and a half-made click.
// Children with a data-key are the same if their keys are equal; others if they are of one kind.
function update(parent, wanted) {
  const keys = new Set(wanted.map((each) => each.dataset?.key));
  for (const child of [...parent.children]) if (!keys.has(child.dataset.key)) child.remove();
  wanted.forEach((each, index) => {
    const old = parent.childNodes[index];
    if (!old) parent.append(each);
    else if (old.dataset?.key !== each.dataset?.key) parent.insertBefore(each, old);
    else become(old, each);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

function become(old, wanted) {
  if (old.nodeName !== wanted.nodeName) return old.replaceWith(wanted);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    // The page's policy rejects styles in attributes.
    if (name !== "style") setAttribute(old, name, value);
    else if (old.style.cssText !== wanted.style.cssText) old.style.cssText = wanted.style.cssText;
  }
  update(old, [...wanted.childNodes]);
}

// A topic's name, which may be broken after its dots.
const breakable = (name) => name.split(/(?<=\.)/).flatMap((part, index) => (index ? [document.createElement("wbr"), part] : [part]));

function setText(element, text) {
  const wanted = visible(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

function setAttribute(element, name, value) {
  const wanted = visibleValue(name, value);
  if (element.getAttribute(name) !== wanted) element.setAttribute(name, wanted);
}

const themes = ["automatic", "light", "dark"];
let theme = "automatic";
function showTheme() {
  if (theme === "automatic") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText($("theme"), `Theme: ${theme}`);
}
// A browser may deny a page its storage.
try { theme = localStorage.getItem("sluice-theme") || theme; } catch {}
if (!themes.includes(theme)) theme = "automatic";
showTheme();
$("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  try { localStorage.setItem("sluice-theme", theme); } catch {}
  showTheme();
});
