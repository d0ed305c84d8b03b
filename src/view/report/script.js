// Switches between views, sorts tables, filters, and takes decisions. The page is whole without it; what it adds are controls.
(function () {
  'use strict';
  var root = document.documentElement, all = function (what, within) {
    return Array.prototype.slice.call((within || document).querySelectorAll(what));
  };
  root.classList.add('scripted');

  // The view that a fragment names, or that has in it what the fragment names.
  function show() {
    var id = decodeURIComponent(location.hash.slice(1)), target = id && document.getElementById(id);
    var view = target && target.closest('section.view') || document.querySelector('section.view');
    if (id === 'main') return;
    bar.hidden = Object.keys(decisions).length === 0 && ['mirrors', 'sets', 'compare'].indexOf(view.id) < 0;
    all('section.view').forEach(function (one) { one.classList.toggle('on', one === view); });
    all('nav.views a').forEach(function (link) {
      if (link.getAttribute('href') === '#' + view.id) {
        link.setAttribute('aria-current', 'page');
        // Not by scrollIntoView, from where a browser would go on when Tab is pressed.
        var nav = link.closest('nav'), frame = nav.getBoundingClientRect(), box = link.getBoundingClientRect();
        nav.scrollLeft += Math.min(0, box.left - frame.left) || Math.max(0, box.right - frame.right);
      } else link.removeAttribute('aria-current');
    });
    if (target && target !== view) {
      var details = target.matches('details') ? target : target.querySelector('details');
      if (details) details.open = true;
      target.scrollIntoView({ block: 'start' });
    } else window.scrollTo(0, 0);
  }
  addEventListener('hashchange', show);

  // Light and dark.
  var theme = document.getElementById('theme');
  function isDark() {
    var chosen = root.getAttribute('data-theme');
    return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  function name() { theme.textContent = isDark() ? 'Light' : 'Dark'; }
  theme.addEventListener('click', function () {
    root.setAttribute('data-theme', isDark() ? 'light' : 'dark');
    name();
  });
  name();

  // Tables whose rows are the bodies: a head sorts by its column.
  function value(body, column) {
    var cell = body.rows[0].cells[column], number = cell.getAttribute('data-value') || cell.textContent.replace(/[, %]/g, '');
    return number !== '' && !isNaN(number) ? +number : cell.textContent.toLowerCase();
  }
  all('table[data-sort]').forEach(function (table) {
    var heads = all('th', table.tHead);
    heads.forEach(function (head, column) {
      if (head.hasAttribute('data-plain')) return;
      var button = document.createElement('button');
      button.type = 'button';
      while (head.firstChild) button.appendChild(head.firstChild);
      head.appendChild(button);
      button.addEventListener('click', function () {
        var up = head.getAttribute('aria-sort') === 'descending';
        heads.forEach(function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        var rows = all('tbody', table).filter(function (body) { return body.parentNode === table; });
        rows.map(function (body, place) { return [value(body, column), place, body]; }).sort(function (x, y) {
          var order = typeof x[0] === typeof y[0] ? (x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : 0) : typeof x[0] === 'number' ? -1 : 1;
          return (up ? order : -order) || x[1] - y[1];
        }).forEach(function (row) { table.appendChild(row[2]); });
      });
    });
  });

  // Filters, of the bodies of a table or the items of a list.
  all('input[data-filter]').forEach(function (input) {
    var of = input.getAttribute('data-filter'), list = document.getElementById(of);
    var told = document.querySelector('[data-count="' + of + '"]');
    var items = Array.prototype.filter.call(list.children, function (item) { return item.matches('tbody, details'); });
    // Before there are controls, whose words are not what is looked for.
    var texts = items.map(function (item) { return item.textContent.toLowerCase(); });
    function filter() {
      var words = input.value.toLowerCase(), shown = 0;
      items.forEach(function (item, number) {
        item.hidden = texts[number].indexOf(words) < 0;
        if (!item.hidden) shown += 1;
      });
      told.textContent = shown + ' of ' + items.length;
    }
    input.addEventListener('input', filter);
    filter();
  });

  // The order of sets.
  all('button[data-order]').forEach(function (button) {
    button.addEventListener('click', function () {
      var by = button.getAttribute('data-order'), list = document.getElementById('set-list');
      all('button[data-order]').forEach(function (other) { other.setAttribute('aria-pressed', other === button); });
      all('details.item', list).sort(function (x, y) {
        var size = y.getAttribute('data-size') - x.getAttribute('data-size');
        return (by === 'size' && size) || x.getAttribute('data-weak') - y.getAttribute('data-weak');
      }).forEach(function (item) { list.appendChild(item); });
    });
  });

  // Decisions, by the first two columns of their rows: both URLs of a pair, or that of a page to keep and nothing.
  var store = 'webtwin decisions ' + document.getElementById('main').getAttribute('data-job'), decisions = {}, controls = [];
  try { decisions = JSON.parse(localStorage.getItem(store)) || {}; } catch (error) { /* Kept by this page alone. */ }
  function make(what, within, words) {
    var made = document.createElement(what);
    if (words) made.textContent = words;
    return within.appendChild(made);
  }
  function button(within, words, press) {
    var made = make('button', within, words);
    made.type = 'button';
    made.className = 'chip';
    made.addEventListener('click', press);
    return made;
  }
  var bar = make('aside', document.body), count = make('span', bar), reason = make('input', make('label', bar, 'Reason for the next decisions '));
  bar.className = 'decisions';
  bar.setAttribute('aria-label', 'Decisions');
  count.className = 'count';
  count.setAttribute('role', 'status');
  reason.type = 'text';
  reason.autocomplete = 'off';
  var save = button(bar, 'Save decisions', function () {
    var rows = Object.keys(decisions).map(function (key) { return key + '\t' + decisions[key].join('\t') + '\n'; });
    var link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['url_a\turl_b\ttag\tnote\n'].concat(rows), { type: 'text/tab-separated-values' }));
    link.download = 'decisions.tsv';
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  });
  var forget = button(bar, 'Delete decisions', function () {
    decisions = {};
    paint();
    reason.focus();
  });
  function paint() {
    var made = Object.keys(decisions).length;
    controls.forEach(function (of) {
      of[0].setAttribute('aria-pressed', decisions[of[1]] !== undefined && decisions[of[1]][0] === of[2]);
    });
    count.textContent = made === 1 ? '1 decision' : made + ' decisions';
    save.disabled = forget.disabled = made === 0;
    try { localStorage.setItem(store, JSON.stringify(decisions)); } catch (error) { /* As above. */ }
  }
  // A button that makes a decision, or takes it back; `instead` are the keys of those that it takes the place of.
  function choice(within, words, key, tag, instead) {
    var made = button(within, words, function () {
      var is_made = decisions[key] && decisions[key][0] === tag;
      [key].concat(instead).forEach(function (old) { delete decisions[old]; });
      if (!is_made) decisions[key] = [tag, reason.value.replace(/\s+/g, ' ').trim()];
      paint();
    });
    controls.push([made, key, tag]);
  }
  function keep(within, urls, number) {
    var keys = urls.map(function (url) { return url + '\t'; });
    choice(within, 'keep this', keys[number], 'keep', keys);
  }
  function judge(within, a, b, label) {
    var key = (a < b ? [a, b] : [b, a]).join('\t');
    within.setAttribute('role', 'group');
    within.setAttribute('aria-label', label);
    choice(within, 'same', key, 'true', []);
    choice(within, 'not the same', key, 'false', []);
    choice(within, 'unsure', key, 'unknown', []);
  }
  function urls(place) {
    return all('.url', place).map(function (of) { return of.querySelector('a, bdi').textContent; });
  }
  function column(table, head, cell) {
    var th = make('th', table.tHead.rows[0], head);
    th.scope = 'col';
    th.className = 'mark';
    all('tr', table.tBodies[0]).forEach(function (row, number) {
      var td = make('td', row);
      td.className = 'mark';
      cell(make('div', td), row, number);
    });
  }
  var marks = {
    pages: function (place) {
      var of = urls(place);
      column(place, 'your choice', function (within, row, number) { keep(within, of, number); });
    },
    links: function (place) {
      var of = urls(place.closest('.inside').querySelector('[data-mark=pages]'));
      column(place, 'your judgement', function (within, row) {
        var ends = row.cells[0].textContent.match(/\d+/g);
        judge(within, of[ends[0] - 1], of[ends[1] - 1], 'pages ' + row.cells[0].textContent);
      });
    },
    pair: function (place) {
      var of = urls(place), within = document.createElement('div');
      all('.side > div', place).forEach(function (side, number) {
        var own = make('p', side);
        own.className = 'mark';
        keep(own, of, number);
      });
      within.className = 'tools mark';
      place.parentNode.insertBefore(within, place.nextSibling);
      judge(within, of[0], of[1], 'A and B');
    }
  };
  all('[data-mark]').forEach(function (place) {
    var details = place.closest('details.item, .unfold details');
    function add() {
      marks[place.getAttribute('data-mark')](place);
      paint();
    }
    // Most are never looked at.
    if (details.open) add(); else details.addEventListener('toggle', add, { once: true });
  });
  paint();
  addEventListener('beforeprint', function () { all('details').forEach(function (one) { one.open = true; }); });
  show();
})();
