// The sheet of keys and the export; their content is in index.html.

import { Refused, read, write } from './api.js';
import { $, count, say } from './dom.js';
import { keysOn, setKeysOn } from './settings.js';
import { checkedOf, proposedOf, store, total } from './store.js';
import { thumbnail } from './tile.js';

export function openHelp() {
	$('#single-keys').checked = keysOn();
	const pictures = [...store.pictures.values()].filter(picture => !picture.error);
	document.querySelectorAll('.legend-row .p').forEach((place, index) => {
		if (pictures.length) place.replaceChildren(thumbnail(pictures[index % pictures.length]));
	});
	$('#help').showModal();
}

const chosen = name => $(`[name=${name}]:checked`, $('#export-form'));

export function openExport() {
	const done = total(checkedOf);
	say({ 'export-checked': count(done), 'export-all': count(done + total(proposedOf)), 'export-result': '' });
	drawExport();
	void countFrom();
	$('#export').showModal();
	chosen('format').focus();
}

/** How many proposed pictures have at least this probability: the surest come first. */
async function proposedFrom(limit) {
	let low = 0,
		high = total(proposedOf);
	while (low < high) {
		const middle = Math.floor((low + high) / 2);
		const { pictures } = await read('pictures', { status: 'proposed', order: 'sure', offset: middle, limit: 1 });
		if (pictures[0]?.probability >= limit) low = middle + 1;
		else high = middle;
	}
	return low;
}

async function countFrom() {
	const { value } = $('[name=limit]');
	say({ 'export-from': '' });
	const found = await proposedFrom(value / 100);
	if (value === $('[name=limit]').value) say({ 'export-from': count(total(checkedOf) + found) });
}

function drawExport() {
	const { value, dataset } = chosen('format');
	const { path } = store.state.project;
	say({
		'export-run': `Export ${dataset.name}`,
		'export-where': `${path}/exports/${dataset.file}`,
		'export-command': `protorect export ${path} --format ${value} --out ${dataset.file}`,
	});
}

async function runExport(event) {
	event.preventDefault();
	const result = $('#export-result');
	const include = chosen('include').value;
	const limit = include === 'from' ? $('[name=limit]').value / 100 : null;
	result.textContent = 'Writing';
	try {
		const body = { format: chosen('format').value, include, min_probability: limit };
		const { path, pictures } = await write('POST', 'export', body);
		result.textContent = `${count(pictures)} pictures written to ${path}`;
	} catch (error) {
		result.textContent = error instanceof Refused ? error.message : 'The server does not answer.';
	}
}

$('#single-keys').addEventListener('change', event => setKeysOn(event.target.checked));
$('#export-form').addEventListener('change', drawExport);
$('[name=limit]').addEventListener('input', () => {
	$('[value=from]').checked = true;
	void countFrom();
});
$('#export-form').addEventListener('submit', runExport);
for (const dialog of document.querySelectorAll('dialog')) {
	dialog.addEventListener('click', event => {
		if (event.target === dialog || event.target.closest('[data-close]')) dialog.close(); // a click beside it
	});
}
