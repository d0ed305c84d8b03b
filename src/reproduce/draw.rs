//! Figures as SVG, without a library: bars over positions.

use std::fmt::Write;

/// A bar chart of shares over positions; the text is ours, so nothing in it needs escaping.
pub fn bars(title: &str, across: &str, up: &str, values: &[f64]) -> String {
    let (width, height, left, low) = (900.0, 360.0, 60.0, 40.0);
    let highest = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let step = (width - left - 20.0) / values.len().max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"18\" font-size=\"14\">{title}</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{across}</text>\n\
         <text x=\"14\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0})\">{up}</text>\n",
        width / 2.0,
        height - 6.0,
        height / 2.0,
    );
    let _ = svg.write_str(&format!("<text x=\"{}\" y=\"40\" text-anchor=\"end\">{highest:.4}</text>\n", left - 4.0));
    for (at, value) in values.iter().enumerate() {
        let tall = value / highest * (height - low - 34.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" fill=\"steelblue\"/>",
            left + at as f64 * step,
            height - low - tall,
            (step * 0.8).max(0.5),
        );
        if at % (values.len() / 8).max(1) == 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{at}</text>",
                left + (at as f64 + 0.4) * step,
                height - low + 16.0
            );
        }
    }
    svg + "</svg>\n"
}
