// What this browser remembers: single keys and light or dark.

let keys = localStorage.getItem('keys') !== 'off';
export const keysOn = () => keys;
export function setKeysOn(value) {
	keys = value;
	localStorage.setItem('keys', keys ? 'on' : 'off');
}

const root = document.documentElement;
const stored = localStorage.getItem('theme');
if (stored) root.dataset.theme = stored;

export function toggleTheme() {
	const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
	root.dataset.theme = dark ? 'light' : 'dark';
	localStorage.setItem('theme', root.dataset.theme);
}
