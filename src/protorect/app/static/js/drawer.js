// Details of a picture: large, its likeliest classes, its nearest examples.

import { chooseButton, choices, similarButton, unknownButton, unsureButton } from './act_buttons.js';
import { pictureUrl, read, thumbnailUrl } from './api.js';
import { $, count, h, iconButton } from './dom.js';
import { Grid } from './grid.js';
import { load, on, store } from './store.js';
import { thumbnail } from './tile.js';

const NEAREST = 4;
const WORDS = {
	example: 'Labeled by you as',
	accepted: 'Accepted as',
	proposed: 'Proposed as',
	unsure: 'Unsure, likeliest',
	unknown: 'Unknown, nearest',
};
let shown = null; // the id whose details are shown

export const detailsOpen = () => shown !== null;
export function openDetails(id) {
	shown = id;
	draw();
}
export function closeDetails() {
	shown = null;
	$('#details').hidden = true;
	Grid.current?.layout();
	Grid.refocus();
}
export function toggleDetails() {
	if (detailsOpen()) closeDetails();
	else if (Grid.current?.ids.length) openDetails(Grid.current.focused());
}

async function draw() {
	const id = shown;
	await load([id]);
	const picture = store.pictures.get(id);
	if (!picture || shown !== id) return;
	const aside = $('#details');
	const opened = aside.hidden;
	aside.hidden = false;
	const likely = [h('div.sub', h('h3', 'Likeliest classes')), h('div.likely', choices(picture, 'choice'))];
	aside.replaceChildren(
		head(picture),
		image(picture),
		h('div', picture.top?.length > 0 && likely),
		h('div.others', chooseButton(), unknownButton(), unsureButton(), similarButton()),
		h('div.nearest'),
	);
	if (opened) Grid.current?.layout();
	const { pictures } = await read('pictures', { similar: id, status: 'example,accepted', limit: NEAREST }).catch(
		() => ({ pictures: [] }),
	);
	if (shown === id) $('.nearest', aside)?.replaceChildren(...nearest(pictures));
}

function head(picture) {
	const grid = Grid.current;
	const at = grid ? grid.ids.indexOf(picture.id) : -1;
	const place = at >= 0 ? ` · picture ${count(at + 1)} of ${count(grid.ids.length)}` : '';
	const text = picture.error ?? `${WORDS[picture.status]} ${picture.label ?? 'none of the classes'}`;
	return h(
		'div.top',
		h('div', h('h2', { title: picture.name }, picture.name), h('p.small.quiet', text + place)),
		h('span.push'),
		iconButton('cross', 'Close the details (V)', closeDetails),
	);
}

function image(picture) {
	const large = h('img.big', { alt: picture.name, src: thumbnailUrl(picture) });
	const full = new Image(); // shown when it has arrived; until then the thumbnail is scaled up
	full.onload = () => {
		large.src = full.src;
	};
	full.src = pictureUrl(picture);
	return large;
}

function nearest(pictures) {
	if (!pictures.length) return [];
	return [
		h('div.sub', h('h3', 'Nearest examples')),
		h(
			'div.near',
			pictures.map(picture => h('figure', thumbnail(picture), h('figcaption', picture.label))),
		),
	];
}

on('pick', () => {
	if (detailsOpen() && Grid.current?.focused() !== shown) openDetails(Grid.current.focused());
});
on('pictures', ids => {
	if (detailsOpen() && ids.includes(shown)) void draw();
});
on('view', () => {
	if (detailsOpen()) closeDetails();
});
