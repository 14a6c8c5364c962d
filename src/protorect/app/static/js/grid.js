// A grid of any number of pictures: only the tiles in view exist. Selection and focus are by id.

import { $, h, perFrame, setPixels } from './dom.js';
import { dragRectangle } from './drag.js';
import { load, on, store } from './store.js';
import { createTile, fillTile } from './tile.js';

const SIZES = [84, 112, 148, 196, 260]; // pixels, smallest tile of each size
const HEADING = 44; // pixels, a section's heading
const AHEAD = 2; // pages of thumbnails that are read in advance
const HOLD = 500; // milliseconds until a touch counts as press and hold

let size = Number(localStorage.getItem('size') ?? 2);
export const zoom = () => size;
export function setZoom(next) {
	size = Math.min(SIZES.length - 1, Math.max(0, next));
	localStorage.setItem('size', size);
	Grid.current?.layout();
}

export class Grid {
	static current = null; // the grid that is shown

	/** Give the keyboard back to the picture in focus. */
	static refocus() {
		Grid.current?.focus(Grid.current.at);
	}

	/** `sections` are [{title, ids, action}]; `labelled` is the class whose list this is, if it is one. */
	constructor({ name, sections, labelled, onopen, onpick }) {
		Object.assign(this, { sections, labelled, onopen, onpick });
		this.ids = sections.flatMap(section => section.ids);
		this.selected = new Set();
		this.at = 0; // the index in focus
		this.anchor = 0; // where a range begins
		this.tiles = new Map(); // index -> element
		this.box = h('div.grid', { role: 'listbox', 'aria-multiselectable': 'true', 'aria-label': name });
		this.draw = perFrame(() => this.drawNow());
		const onscroll = () => {
			this.draw();
			this.onpage?.();
		};
		this.element = h('div.scroll', { onscroll }, this.box);
		this.watch = new ResizeObserver(() => this.layout());
		this.listen();
	}

	/** Make a grid the one that is shown; null if the view has none. */
	static show(grid) {
		Grid.current?.watch.disconnect();
		Grid.current = grid;
		grid?.watch.observe(grid.element);
		grid?.layout();
	}

	layout() {
		if (!this.element.isConnected) return;
		const style = getComputedStyle(this.element);
		const gap = parseFloat(style.getPropertyValue('--gap')) || 8;
		const width = this.element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
		const narrow = matchMedia('(max-width: 640px)').matches;
		const smallest = Math.min(narrow ? 116 : Infinity, SIZES[size]);
		const first = this.topmost();
		this.columns = Math.max(1, Math.floor((width + gap) / (smallest + gap)));
		this.side = (width - gap * (this.columns - 1)) / this.columns;
		this.step = this.side + gap;
		this.padding = parseFloat(style.paddingTop);
		let top = 0,
			start = 0;
		for (const section of this.sections) {
			Object.assign(section, { top, start, heading: section.title ? HEADING : 0 });
			section.rows = Math.ceil(section.ids.length / this.columns);
			top += section.heading + section.rows * this.step;
			start += section.ids.length;
		}
		this.box.style.height = `${Math.max(0, top - gap)}px`;
		this.drawHeadings();
		for (const [index, tile] of this.tiles) this.put(tile, index);
		if (first > 0) this.element.scrollTop = this.place(first).top;
		this.drawNow();
		this.onpage?.();
	}

	drawHeadings() {
		this.box.querySelectorAll('.section').forEach(one => one.remove());
		for (const section of this.sections.filter(one => one.title)) {
			const heading = h('div.section', { role: 'presentation' }, h('h2', section.title), section.action);
			setPixels(heading, { top: section.top });
			this.box.append(heading);
		}
	}

	section(index) {
		return this.sections.findLast(one => one.start <= index && one.ids.length) ?? this.sections[0];
	}
	place(index) {
		const section = this.section(index);
		const row = Math.floor((index - section.start) / this.columns);
		return {
			top: section.top + section.heading + row * this.step,
			left: ((index - section.start) % this.columns) * this.step,
		};
	}
	/** Indices of the tiles between two heights of the box. */
	between(top, bottom, whole = false) {
		const found = [];
		for (const section of this.sections) {
			const base = section.top + section.heading;
			const from = (whole ? Math.ceil : Math.floor)((top - base) / this.step);
			const to = Math.floor((bottom - base - (whole ? this.side : 0)) / this.step);
			const end = Math.min(section.ids.length, (to + 1) * this.columns);
			for (let i = Math.max(0, from) * this.columns; i < end; i += 1) found.push(section.start + i);
		}
		return found;
	}
	/** Ids of the tiles that are wholly in view: the page. */
	page() {
		if (!this.columns) return [];
		const top = this.element.scrollTop - this.padding - 1;
		return this.between(top, top + this.element.clientHeight + 2, true).map(index => this.ids[index]);
	}
	topmost() {
		return this.columns ? (this.between(this.element.scrollTop, this.element.scrollTop + 1)[0] ?? 0) : 0;
	}

	drawNow() {
		if (!this.columns || !this.element.isConnected) return;
		const top = this.element.scrollTop - this.padding,
			height = this.element.clientHeight;
		const wanted = new Set(this.between(top - height / 2, top + 1.5 * height));
		if (this.ids.length) wanted.add(this.at);
		const free = [];
		for (const [index, tile] of this.tiles)
			if (!wanted.has(index)) {
				this.tiles.delete(index);
				free.push(tile);
			}
		for (const index of wanted) {
			let tile = this.tiles.get(index);
			if (!tile) {
				tile = free.pop() ?? this.box.appendChild(createTile());
				tile.dataset.key = '';
				tile.dataset.index = index;
				this.put(tile, index);
				tile.setAttribute('aria-posinset', index + 1);
				tile.setAttribute('aria-setsize', this.ids.length);
				this.tiles.set(index, tile);
			}
			tile.tabIndex = index === this.at ? 0 : -1;
			const id = this.ids[index];
			fillTile(tile, store.pictures.get(id), { selected: this.selected.has(id), labelled: this.labelled });
		}
		free.forEach(tile => tile.remove());
		const ahead = this.between(top - height, top + (1 + AHEAD) * height).map(index => this.ids[index]);
		load(ahead).catch(() => {});
	}

	put(tile, index) {
		const { top, left } = this.place(index);
		setPixels(tile, { x: left, y: top, side: this.side });
	}

	focused() {
		return this.ids[this.at];
	}
	targets() {
		return this.selected.size ? [...this.selected] : this.ids.length ? [this.focused()] : [];
	}

	focus(index) {
		if (!this.ids.length) return;
		this.at = Math.max(0, Math.min(this.ids.length - 1, index));
		const view = this.element;
		const { top } = this.place(this.at);
		const above = top + this.padding - this.section(this.at).heading;
		if (above < view.scrollTop) view.scrollTop = above;
		else if (top + this.side + this.padding > view.scrollTop + view.clientHeight)
			view.scrollTop = top + this.side + this.padding - view.clientHeight + 8;
		this.drawNow();
		this.tiles.get(this.at)?.focus({ preventScroll: true });
		this.onpick?.();
	}
	toggle(index) {
		const id = this.ids[index];
		if (!this.selected.delete(id)) this.selected.add(id);
		this.anchor = index;
		this.focus(index);
	}
	extend(index) {
		const [from, to] = [Math.min(this.anchor, index), Math.max(this.anchor, index)];
		for (let i = from; i <= to; i += 1) this.selected.add(this.ids[i]);
		this.focus(index);
	}
	select(ids) {
		this.selected = new Set(ids);
		this.drawNow();
		this.onpick?.();
	}
	clear() {
		this.select([]);
	}
	/** After an act without a selection, focus goes to the next picture. */
	advance() {
		if (this.selected.size) this.clear();
		else this.focus(this.at + 1);
	}
	turnPage() {
		const page = this.page();
		const next = this.ids.indexOf(page.at(-1)) + 1;
		if (next <= 0 || next >= this.ids.length) return false;
		this.element.scrollTop = this.place(next).top;
		this.focus(next);
		return true;
	}

	listen() {
		const on = (kind, run) => {
			const handle = event => {
				const tile = event.target.closest('.tile');
				if (tile) run(Number(tile.dataset.index), event);
			};
			this.box.addEventListener(kind, handle, { passive: true });
		};
		const open = index => {
			this.focus(index);
			this.onopen?.(this.ids[index]);
		};
		let hold = null,
			held = false;
		on('click', (index, event) => {
			if (held) held = false;
			else if (event.shiftKey) this.extend(index);
			else this.toggle(index);
		});
		on('dblclick', open);
		on('touchstart', index => {
			hold = setTimeout(() => {
				held = true;
				open(index);
			}, HOLD);
		});
		for (const end of ['touchend', 'touchmove', 'touchcancel']) on(end, () => clearTimeout(hold));
		this.box.addEventListener('contextmenu', event => held && event.preventDefault());
		on('focusin', index => {
			if (index === this.at) return;
			this.at = index;
			this.drawNow();
			this.onpick?.();
		});
		dragRectangle(this.element, this.box, (from, to, left, right) => {
			const hit = this.between(from, to).filter(index => {
				const { left: x } = this.place(index);
				return x < right && x + this.side > left;
			});
			this.select(hit.map(index => this.ids[index]));
		});
	}
}

on('pictures changed connection', () => Grid.current?.draw());

export const gridInFocus = () => Boolean($('.grid')?.contains(document.activeElement));
