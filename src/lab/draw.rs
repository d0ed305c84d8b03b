//! Figures as SVG, without a library: bars, points, curves.

use std::fmt::Write;

/// Draws a bar chart of fractions over positions. All texts come from this program, so they need no
/// escaping.
pub fn bars(title: &str, x_title: &str, y_title: &str, values: &[f64]) -> String {
    let highest = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let step = (WIDTH - LEFT_MARGIN - 20.0) / values.len().max(1) as f64;
    let mut svg = frame(title, x_title, y_title);
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{TOP}\" text-anchor=\"end\">{highest:.4}</text>", LEFT_MARGIN - 4.0);
    for (column, value) in values.iter().enumerate() {
        let tall = value / highest * (HEIGHT - LOW - TOP);
        let (x, y, wide) = (LEFT_MARGIN + column as f64 * step, HEIGHT - LOW - tall, (step * 0.8).max(0.5));
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" fill=\"steelblue\"/>"
        );
        if column % (values.len() / 8).max(1) == 0 {
            let (x, y) = (x + step * 0.4, HEIGHT - LOW + 16.0);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{column}</text>");
        }
    }
    svg + "</svg>\n"
}

/// Colours of the series of a figure, darkest first, as in the papers.
const COLOURS: [&str; 5] = ["#1b3a57", "steelblue", "#a8c6e0", "#b5651d", "#c0392b"];

/// Maximum number of points of a curve that get markers.
const MAX_MARKERS: usize = 20;

fn frame(title: &str, x_title: &str, y_title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT_MARGIN}\" y=\"18\" font-size=\"14\">{title}</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{x_title}</text>\n\
         <text x=\"14\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {2})\">{y_title}</text>\n",
        WIDTH / 2.0,
        HEIGHT - 6.0,
        HEIGHT / 2.0,
    )
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT_MARGIN: f64 = 60.0;
const LOW: f64 = 44.0;
const TOP: f64 = 40.0;

/// Draws bars of several series next to each other. `series` has names and fractions, one fraction
/// for each of `labels`.
pub fn grouped_bars(title: &str, x_title: &str, labels: &[&str], series: &[(&str, Vec<f64>)]) -> String {
    let mut svg = frame(title, x_title, "share of pages");
    let step = (WIDTH - LEFT_MARGIN - 20.0) / labels.len().max(1) as f64;
    let wide = step * 0.8 / series.len().max(1) as f64;
    for (number, (name, values)) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let y = TOP + 4.0 + 18.0 * number as f64;
        let _ = writeln!(svg, "<rect x=\"700\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        let _ = writeln!(svg, "<text x=\"718\" y=\"{}\">{name}</text>", y + 11.0);
        for (column, value) in values.iter().enumerate() {
            let tall = value * (HEIGHT - LOW - TOP);
            let x = LEFT_MARGIN + column as f64 * step + number as f64 * wide;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" fill=\"{colour}\"/>",
                HEIGHT - LOW - tall
            );
        }
    }
    for (column, label) in labels.iter().enumerate() {
        let (x, y) = (LEFT_MARGIN + (column as f64 + 0.4) * step, HEIGHT - LOW + 16.0);
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{label}</text>");
    }
    for part in 0..=4 {
        let y = HEIGHT - LOW - f64::from(part) / 4.0 * (HEIGHT - LOW - TOP);
        let _ =
            writeln!(svg, "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{} %</text>", LEFT_MARGIN - 4.0, part * 25);
    }
    svg + "</svg>\n"
}

/// Draws curves over two axes that begin at 0 and end at (`right`, `high`). `series` has names and
/// points.
pub fn curves(
    title: &str,
    (x_title, right): (&str, f64),
    (y_title, high): (&str, f64),
    series: &[(String, Vec<(f64, f64)>)],
) -> String {
    let mut svg = frame(title, x_title, y_title);
    let x = |value: f64| LEFT_MARGIN + value / right * (WIDTH - LEFT_MARGIN - 30.0);
    let y = |value: f64| HEIGHT - LOW - value / high * (HEIGHT - LOW - TOP);
    let (end, low) = (WIDTH - 30.0, HEIGHT - LOW);
    for part in 0..=5 {
        let (value, y_value) = (right * f64::from(part) / 5.0, high * f64::from(part) / 5.0);
        let (x_position, tall) = (x(value), y(y_value));
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let _ =
            writeln!(svg, "<path d=\"M{x_position:.1} {TOP}V{low}M{LEFT_MARGIN} {tall:.1}H{end}\" stroke=\"#ddd\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{x_position:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>
\
             <text x=\"{}\" y=\"{tall:.1}\" text-anchor=\"end\">{}</text>",
            low + 16.0,
            rounded(value),
            LEFT_MARGIN - 4.0,
            rounded(y_value)
        );
    }
    for (number, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let place = |&(right, up): &(f64, f64)| format!("{:.1},{:.1}", x(right), y(up));
        let path: Vec<String> = points.iter().map(place).collect();
        let path = path.join(" ");
        let _ = writeln!(svg, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        for &(right, up) in points.iter().filter(|_| points.len() <= MAX_MARKERS) {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x(right), y(up));
        }
        let key = TOP + 14.0 + 16.0 * number as f64;
        let _ =
            writeln!(svg, "<text x=\"{}\" y=\"{key}\" fill=\"{colour}\" text-anchor=\"end\">{name}</text>", end - 6.0);
    }
    svg + "</svg>
"
}

/// Draws points on two logarithmic axes. All coordinates must be at least 1.
pub fn log_points(title: &str, y: &str, y_title: &str, points: &[(f64, f64)]) -> String {
    let mut svg = frame(title, y, y_title);
    let decades = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(10.0, f64::max).log10().ceil();
    let (right, high) = (decades(|point| point.0), decades(|point| point.1));
    let x = |value: f64| LEFT_MARGIN + value.log10() / right * (WIDTH - LEFT_MARGIN - 30.0);
    let y = |value: f64| HEIGHT - LOW - value.log10() / high * (HEIGHT - LOW - TOP);
    for decade in 0..=right as i32 {
        let value = 10f64.powi(decade);
        let (x_position, low) = (x(value), HEIGHT - LOW);
        let _ = writeln!(svg, "<path d=\"M{x_position:.1} {TOP}V{low}\" stroke=\"#ddd\"/>");
        let _ = writeln!(svg, "<text x=\"{x_position:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>", low + 16.0);
    }
    for decade in 0..=high as i32 {
        let value = 10f64.powi(decade);
        let height = y(value);
        let _ = writeln!(svg, "<path d=\"M{LEFT_MARGIN} {height:.1}H{}\" stroke=\"#ddd\"/>", WIDTH - 30.0);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{height:.1}\" text-anchor=\"end\">{value}</text>", LEFT_MARGIN - 4.0);
    }
    for &(right, up) in points {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"steelblue\" fill-opacity=\"0.7\"/>",
            x(right),
            y(up)
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_and_every_bar_is_drawn_within_the_picture() {
        let points = [(1.0, 1.0), (143.0, 1349.0), (360.0, 1052.0)];
        let svg = log_points("t", "x", "y", &points);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("cx=\"60.0\" cy=\"376.0\"") && svg.ends_with("</svg>\n"), "{svg}");
        let svg = grouped_bars("t", "x", &["1", "2"], &[("a", vec![1.0, 0.0]), ("b", vec![0.5, 0.5])]);
        // The background, two legend boxes and four bars.
        assert_eq!(svg.matches("<rect").count(), 7);
        let series = [("a".to_string(), vec![(0.0, 1.0), (1.0, 0.0)]), ("b".to_string(), vec![(0.5, 0.5)])];
        let svg = curves("t", ("x", 1.0), ("y", 1.0), &series);
        assert!(svg.contains("points=\"60.0,40.0 870.0,376.0\"") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
    }
}
