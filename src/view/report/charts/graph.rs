//! Graphs on a circle: hosts that share pages, and the pages of a set with the links that connect
//! it.

use std::f64::consts::PI;

use super::{at, chart, label, shortened};
use crate::report::contract::{HostPair, ReportedMeasure, SimilarSet};
use crate::report::figures::part;
use crate::report::html::Html;

/// Draws hosts on a circle in the given order, and a curve for each pair, whose width grows with
/// the number of shared pages.
pub fn hosts(hosts: &[String], pairs: &[HostPair]) -> Html {
    let (middle, radius) = ([280.0, 280.0], 136.0);
    let place = |number: usize, radius: f64| circle_point(middle, radius, number, hosts.len());
    let number = |host: &str| hosts.iter().position(|of| of == host);
    let max_shared = pairs.iter().map(|pair| pair.shared).max().unwrap_or(1);
    let mut html = Html::new();
    for pair in pairs {
        let (Some(a), Some(b)) = (number(&pair.a), number(&pair.b)) else { continue };
        let ([x1, y1, _], [x2, y2, _]) = (place(a, radius), place(b, radius));
        html.markup("<path").attribute(
            "class",
            match pair.kind.as_str() {
                "alias" => "edge alias",
                "mirror" => "edge mirror",
                _ => "edge",
            },
        );
        let path = format!("M{} {}Q{} {} {} {}", at(x1), at(y1), at(middle[0]), at(middle[1]), at(x2), at(y2));
        html.attribute("d", path).attribute("stroke-width", at(1.0 + 7.0 * part(pair.shared, max_shared).sqrt()));
        html.attribute("stroke-opacity", if pair.kind == "part" { "0.35" } else { "0.75" }).markup("/>");
    }
    for (number, host) in hosts.iter().enumerate() {
        let [x, y, _] = place(number, radius);
        dot(&mut html, [x, y], 5.0, "node");
        let [x, y, angle] = place(number, radius + 12.0);
        // Names are radial; those of the left half are turned by 180 degrees to be readable.
        let (rotation, class) = if angle.cos() < -0.01 { (angle + PI, "end") } else { (angle, "") };
        html.markup("<text").attribute("class", class);
        let transform =
            format!("translate({} {}) rotate({})", at(x), at(y + 4.0 * angle.cos().abs()), at(rotation.to_degrees()));
        html.attribute("transform", transform).markup(">").text(shortened(host, 22)).markup("</text>");
    }
    chart(560.0, 560.0, &html)
}

/// Draws the members of a set and the links of its spanning tree.
pub fn set(set: &SimilarSet) -> Html {
    // Two members are placed on a line, because a circle would waste height.
    let is_pair = set.members.len() <= 2;
    let (middle, height) = if is_pair { ([200.0, 40.0], 84.0) } else { ([200.0, 150.0], 300.0) };
    let place = |number: usize| match is_pair {
        true => [if number == 0 { 110.0 } else { 290.0 }, middle[1], if number == 0 { PI } else { 0.0 }],
        false => circle_point(middle, 106.0, number, set.members.len()),
    };
    let mut html = Html::new();
    let strengths =
        || set.links.iter().filter(|link| link.by.measure == ReportedMeasure::Overlap).map(|link| link.by.value);
    let max_strength = strengths().max().unwrap_or(1);
    for (number, link) in set.links.iter().enumerate() {
        let ([x1, y1, _], [x2, y2, _]) = (place(link.a), place(link.b));
        let class = match link.by.measure {
            ReportedMeasure::Exact => "edge exact",
            _ if number == 0 => "edge weak",
            _ => "edge",
        };
        html.markup("<line").attribute("class", class).attribute("x1", at(x1)).attribute("y1", at(y1));
        html.attribute("x2", at(x2)).attribute("y2", at(y2));
        if class == "edge" {
            html.attribute(
                "stroke-width",
                at(1.0 + 3.0 * part(u64::from(link.by.value), u64::from(max_strength)).min(1.0)),
            );
        }
        html.markup("/>");
    }
    // More labels would overlap.
    if set.links.len() <= 14 {
        for link in set.links.iter().filter(|link| link.by.measure != ReportedMeasure::Exact) {
            let ([x1, y1, _], [x2, y2, _]) = (place(link.a), place(link.b));
            let value = short_value(link.by.measure, link.by.value);
            label(&mut html, [0.62 * x1 + 0.38 * x2, 0.62 * y1 + 0.38 * y2 - 3.0], "sub mid halo", &value);
        }
    }
    for (number, member) in set.members.iter().enumerate() {
        let [x, y, angle] = place(number);
        dot(&mut html, [x, y], 7.0, if member.role == "keep" { "node stay" } else { "node" });
        if set.members.len() <= 16 {
            let (class, step) = if angle.cos() < -0.2 {
                ("end", [-12.0, 4.0])
            } else if angle.cos() > 0.2 {
                ("", [12.0, 4.0])
            } else {
                ("mid", [0.0, if angle.sin() < 0.0 { -14.0 } else { 22.0 }])
            };
            label(
                &mut html,
                [x + step[0], y + step[1]],
                class,
                &shortened(&member.host, if is_pair { 18 } else { 15 }),
            );
        }
    }
    chart(400.0, height, &html)
}

/// Formats the value of a link.
fn short_value(measure: ReportedMeasure, value: u32) -> String {
    match measure {
        ReportedMeasure::Exact => "=".into(),
        ReportedMeasure::Overlap | ReportedMeasure::Given => value.to_string(),
        ReportedMeasure::Hamming => format!("{value} bits"),
        ReportedMeasure::Signatures => format!("{:.4}", f64::from(value) / 1e9),
        ReportedMeasure::Views
        | ReportedMeasure::Placeholder
        | ReportedMeasure::Declared
        | ReportedMeasure::Minhash
        | ReportedMeasure::Context => {
            format!("{} %", value / 10_000)
        }
    }
}

fn circle_point(middle: [f64; 2], radius: f64, number: usize, count: usize) -> [f64; 3] {
    let angle = 2.0 * PI * number as f64 / count.max(1) as f64 - PI / 2.0;
    [middle[0] + radius * angle.cos(), middle[1] + radius * angle.sin(), angle]
}

fn dot(html: &mut Html, [x, y]: [f64; 2], radius: f64, class: &'static str) {
    html.markup("<circle").attribute("class", class).attribute("cx", at(x)).attribute("cy", at(y));
    html.attribute("r", at(radius)).markup("/>");
}
