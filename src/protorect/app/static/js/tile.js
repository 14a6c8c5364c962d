// One picture in a grid. Its status is shown by frame and mark, never by color alone.

import { isUnsaved } from './acts.js';
import { thumbnailUrl } from './api.js';
import { h, icon, percent, shown } from './dom.js';
import { isAside, store } from './store.js';

const MARKS = {
	accepted: ['check', false],
	example: ['star', true],
	unsure: ['ask', false],
	unknown: ['slash', false],
};
const DOUBTFUL = 0.7; // below it, a tile shows its probability

/** A small image without a text; the picture may be known by number only. */
export const thumbnail = (picture, attributes) =>
	h('img', {
		alt: '',
		src: picture.id === undefined ? `/api/thumbnail/${picture}` : thumbnailUrl(picture),
		...attributes,
	});
export const classPicture = ({ thumbnail: id }) => (id === null ? h('span.pic') : thumbnail(id));

export function createTile() {
	const tile = h('div.tile.wait', { role: 'option', tabindex: '-1', 'aria-selected': 'false' });
	const onerror = () => tile.classList.add('gone');
	const image = h('img', { alt: '', draggable: 'false', decoding: 'async', onerror });
	tile.append(h('span.as', { 'aria-hidden': 'true' }, h('span.p', image), h('span.pick', icon('check'))));
	return tile;
}

const hasProbability = ({ status, probability }) => status === 'proposed' && probability !== null;

/** Show a picture in a tile; `picture` is undefined while it is read. */
export function fillTile(tile, picture, { selected, labelled }) {
	const waits = picture && isUnsaved(picture);
	const key = picture && JSON.stringify([picture, selected, labelled, waits, store.changed.get(picture.id) ?? null]);
	if (tile.dataset.key === key && key) return;
	tile.dataset.key = key ?? '';
	tile.classList.toggle('wait', !picture);
	tile.setAttribute('aria-selected', String(selected));
	const parts = tile.firstChild;
	parts.querySelectorAll('.mark, .pct, .now, .why').forEach(part => part.remove());
	const image = parts.querySelector('img');
	if (!picture) {
		image.removeAttribute('src');
		tile.dataset.status = 'proposed';
		tile.setAttribute('aria-label', 'Being read');
		return;
	}
	tile.dataset.status = picture.status;
	tile.setAttribute('aria-label', describe(picture));
	tile.title = picture.name;
	const changed = store.changed.get(picture.id);
	tile.classList.toggle('changed', Boolean(changed));
	if (picture.error) {
		image.removeAttribute('src');
		parts.append(
			h('span.why', icon('broken'), h('b', 'Cannot be read'), h('span', picture.error), h('span', picture.name)),
		);
		return;
	}
	const source = thumbnailUrl(picture);
	if (image.getAttribute('src') !== source) {
		tile.classList.remove('gone');
		image.src = source;
	}
	const moved = labelled !== undefined && picture.label !== labelled && !isAside(picture);
	if (waits) parts.append(h('span.now.fail', icon('work'), h('span', 'Not saved')));
	else if (changed || moved) parts.append(newLabel(picture, changed));
	else {
		const mark = MARKS[picture.status];
		if (mark) parts.append(h('span.mark', icon(...mark)));
		const sure = picture.probability < DOUBTFUL ? '' : '.sure';
		if (hasProbability(picture)) parts.append(h(`span.pct${sure}`, percent(picture.probability)));
	}
}

function newLabel(picture, changed) {
	const to = changed ? changed.to : picture.label;
	const own = picture.status === 'example' && !changed;
	return h('span', { class: own ? 'now you' : 'now' }, own ? icon('star', true) : icon('arrow'), h('span', shown(to)));
}

function describe(picture) {
	if (picture.error) return `Cannot be read: ${picture.error}, ${picture.name}`;
	const label = picture.label === null ? 'No label' : picture.label;
	const sure = hasProbability(picture) ? `, ${percent(picture.probability)}` : '';
	return `${label}, ${picture.status}${sure}, ${picture.name}`;
}
