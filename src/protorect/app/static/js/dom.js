// Elements, icons and texts.

export const $ = (selector, root = document) => root.querySelector(selector);

/**
 * Create an element from `tag.class.class`, attributes and children. Attributes that begin with `on`
 * are listeners, `vars` are custom properties; what is null, undefined or false is left out.
 */
export function h(name, ...rest) {
	const [tag, ...classes] = name.split('.');
	const element = document.createElement(tag);
	if (classes.length) element.className = classes.join(' ');
	if (tag === 'button') element.type = 'button';
	const given = rest[0]?.constructor === Object ? rest.shift() : {};
	for (const [attribute, value] of Object.entries(given)) {
		if (value === undefined || value === null || value === false) continue;
		if (attribute.startsWith('on')) element.addEventListener(attribute.slice(2), value);
		else if (attribute === 'vars') setVariables(element, value);
		else if (attribute === 'value') element.value = value;
		else element.setAttribute(attribute, value === true ? '' : value);
	}
	fill(element, ...rest);
	return element;
}

/** Set the texts of elements, by id. */
export function say(texts) {
	for (const [id, text] of Object.entries(texts)) document.getElementById(id).textContent = text;
}

/** Replace the children of an element; what is null, undefined, false or 0 is left out. */
export function fill(element, ...children) {
	element.replaceChildren(...children.flat(2).filter(Boolean));
}

/** Set custom properties by script: the content security policy forbids style attributes. */
export function setVariables(element, variables, unit = '') {
	for (const [name, value] of Object.entries(variables)) element.style.setProperty(`--${name}`, value + unit);
}
export const setPixels = (element, lengths) => setVariables(element, lengths, 'px');

const SVG = 'http://www.w3.org/2000/svg';

export function icon(name, solid = false) {
	const svg = document.createElementNS(SVG, 'svg');
	svg.setAttribute('class', solid ? 'i solid' : 'i');
	svg.setAttribute('aria-hidden', 'true');
	const use = document.createElementNS(SVG, 'use');
	use.setAttribute('href', `#icon-${name}`);
	svg.append(use);
	return svg;
}

/** A key cap inside a button; the button itself has aria-keyshortcuts. */
export const cap = key => h('kbd', { 'aria-hidden': 'true' }, key);

export function button(text, { key, keys, kind = '', onclick, ...attributes } = {}) {
	const made = { 'aria-keyshortcuts': keys ?? key, onclick, ...attributes };
	return h(['button.btn', ...kind.split(' ').filter(Boolean)].join('.'), made, text, key && cap(key));
}

export function iconButton(name, label, onclick, attributes = {}) {
	return h('button.btn.plain.icon', { 'aria-label': label, title: label, onclick, ...attributes }, icon(name));
}

export const nameField = (kind, attributes) => h(kind, { autocomplete: 'off', maxlength: 200, ...attributes });

/** A form that makes a class: `named(name)` is called on Enter, and with the button. */
export function nameForm(kind, { input, text, kind: look = '', named, before, after }) {
	const onsubmit = event => {
		event.preventDefault();
		const name = input.value.trim();
		if (name) named(name);
	};
	return h(kind, { onsubmit }, before, input, button(text, { key: 'Enter', kind: look, type: 'submit' }), after);
}

export const count = new Intl.NumberFormat('en-US').format;
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : word.endsWith('s') ? 'es' : 's'}`;
export const percent = (p, digits = 0) => `${(100 * p).toFixed(digits)}\u00a0%`;

/** The name shown for a class or one of the two groups. */
export const shown = label =>
	({ _unsure: 'Unsure', _unknown: 'Unknown', __proto__: null })[label] ?? label ?? 'no label';

export const duration = seconds =>
	seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;

/** Call a function at most once per frame. */
export function perFrame(run) {
	let waiting = false;
	return () => {
		if (!waiting) requestAnimationFrame(() => ((waiting = false), run()));
		waiting = true;
	};
}
