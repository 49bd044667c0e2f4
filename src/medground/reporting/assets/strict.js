"use strict";
// Plotly writes style attributes, which the page's policy refuses as text. The same rules through the style object are
// allowed, so the policy needs no exception.
{
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value;
    else set.call(this, name, value);
  };
}

// Elements from names, properties and children; text never becomes markup.
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

function readBlock(id) {
  return JSON.parse(document.getElementById(id).textContent);
}
