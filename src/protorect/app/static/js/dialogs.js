// The sheet of keys and the export; their content is in index.html.

import { Refused, write } from './api.js';
import { $, count } from './dom.js';
import { keysOn, setKeysOn } from './settings.js';
import { checkedOf, store } from './store.js';

export function openHelp() {
	$('#single-keys').checked = keysOn();
	$('#help').showModal();
}

const chosen = name => $(`[name=${name}]:checked`, $('#export-form'));

export function openExport() {
	const { classes } = store.state;
	const done = classes.reduce((sum, one) => sum + checkedOf(one), 0);
	$('#export-checked').textContent = count(done);
	$('#export-all').textContent = count(done + classes.reduce((sum, one) => sum + one.proposed, 0));
	$('#export-result').textContent = '';
	drawExport();
	$('#export').showModal();
	chosen('format').focus();
}

function drawExport() {
	const { value, dataset } = chosen('format');
	const { path } = store.state.project;
	$('#export-run').textContent = `Export ${dataset.name}`;
	$('#export-where').textContent = `${path}/exports/${dataset.file}`;
	$('#export-command').textContent = `protorect export ${path} --format ${value} --out ${dataset.file}`;
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

export function startDialogs() {
	$('#single-keys').addEventListener('change', event => setKeysOn(event.target.checked));
	$('#export-form').addEventListener('change', drawExport);
	$('#export-form').addEventListener('submit', runExport);
	for (const dialog of document.querySelectorAll('dialog')) {
		dialog.addEventListener('click', event => {
			if (event.target === dialog || event.target.closest('[data-close]')) dialog.close(); // a click beside it
		});
	}
}
