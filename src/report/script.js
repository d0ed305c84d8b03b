// Switches between views, sorts tables, and filters. The page is whole without it; it makes no content.
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
    all('section.view').forEach(function (one) { one.classList.toggle('on', one === view); });
    all('nav.views a').forEach(function (link) {
      if (link.getAttribute('href') === '#' + view.id) {
        link.setAttribute('aria-current', 'page');
        link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
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
    function filter() {
      var words = input.value.toLowerCase(), shown = 0, items = Array.prototype.filter.call(list.children, function (item) {
        return item.matches('tbody, details');
      });
      items.forEach(function (item) {
        item.hidden = item.textContent.toLowerCase().indexOf(words) < 0;
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
  addEventListener('beforeprint', function () { all('details').forEach(function (one) { one.open = true; }); });
  show();
})();
