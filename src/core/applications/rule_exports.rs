//! Exports of URL rules in the formats that crawlers read.

use std::fmt::Write;

use super::exports::RowExport;
use super::substitutions::{Substitution, substitutions};
use crate::url_rules::rows::RuleRow;

/// Exports of URL rules, made of their rows in the order in which the rules are applied.
///
/// | file | reader | form |
/// |---|---|---|
/// | `url-rules.tsv` | people, and programs that implement the edits | a rule per line |
/// | `url-substitutions.tsv` | Scrapy ([`SCRAPY`](super::exports::SCRAPY)), any program | domain, regular expression and replacement per line |
/// | `regex-normalize.xml` | Nutch, `urlnormalizer-regex` | `regex` elements |
/// | `heritrix-canonicalization.xml` | Heritrix 3 | a `canonicalizationPolicy` of `RegexRule` beans |
/// | `stormcrawler-urlfilters.json` | StormCrawler, `RegexURLNormalizer` | an entry of `urlfilters.json` |
/// | `norconex-url-normalizer.xml` | Norconex HTTP Collector, `GenericURLNormalizer` | `replace` elements |
///
/// Expressions are in the order of the rules. Fragments are removed first.
pub const RULE_EXPORTS: [RowExport<RuleRow>; 6] = [
    RowExport { head: RULES_HEAD, head_of_none: RULES_HEAD, ..RowExport::of_lines("url-rules.tsv", rule_line) },
    RowExport {
        head: SUBSTITUTIONS_HEAD,
        head_of_none: SUBSTITUTIONS_HEAD,
        ..RowExport::of_lines("url-substitutions.tsv", |row, text| {
            for_each_substitution(row, |one| writeln!(text, "{}\t{}\t{}", row.domain, one.pattern, one.replacement()))
        })
    },
    RowExport {
        head: NUTCH_HEAD,
        head_of_none: NUTCH_HEAD,
        end: "</regex-normalize>\n",
        ..RowExport::of_lines("regex-normalize.xml", |row, text| {
            for_each_substitution(row, |substitution| {
                let [pattern, to] = [&substitution.pattern, &substitution.replacement()].map(|text| xml(text));
                writeln!(text, "  <regex><pattern>{pattern}</pattern><substitution>{to}</substitution></regex>")
            })
        })
    },
    RowExport {
        head: HERITRIX_HEAD,
        head_of_none: HERITRIX_HEAD,
        end: HERITRIX_END,
        ..RowExport::of_lines("heritrix-canonicalization.xml", |row, text| {
            for_each_substitution(row, |substitution| {
                let [pattern, format] = [&substitution.pattern, &substitution.replacement()].map(|text| xml(text));
                writeln!(
                    text,
                    "      <bean class=\"org.archive.modules.canonicalize.RegexRule\">\n        \
                     <property name=\"regex\" value=\"{pattern}\"/>\n        \
                     <property name=\"format\" value=\"{format}\"/>\n      </bean>"
                )
            })
        })
    },
    RowExport {
        head: STORMCRAWLER_HEAD,
        head_of_none: STORMCRAWLER_HEAD,
        end: "\n        ]\n      }\n    }\n  ]\n}\n",
        ..RowExport::of_lines("stormcrawler-urlfilters.json", |row, text| {
            for_each_substitution(row, |substitution| {
                let [pattern, to] =
                    [&substitution.pattern, &substitution.replacement()].map(|text| serde_json::json!(text));
                write!(text, ",\n          {{ \"pattern\": {pattern}, \"substitution\": {to} }}")
            })
        })
    },
    RowExport {
        head: NORCONEX_HEAD,
        head_of_none: NORCONEX_HEAD,
        end: "  </replacements>\n</urlNormalizer>\n",
        ..RowExport::of_lines("norconex-url-normalizer.xml", |row, text| {
            for_each_substitution(row, |substitution| {
                let [pattern, to] = [&substitution.pattern, &substitution.replacement()].map(|text| xml(text));
                writeln!(text, "    <replace><match>{pattern}</match><replacement>{to}</replacement></replace>")
            })
        })
    },
];

const RULES_HEAD: &str = "domain\trank\tscope\tkind\tpattern\treplacement\tsupport\tviolations\tbound\tsaved\n";
const SUBSTITUTIONS_HEAD: &str = "domain\tpattern\tsubstitution\n";
const NUTCH_HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<regex-normalize>\n  \
                          <regex><pattern>#.*$</pattern><substitution></substitution></regex>\n";
const HERITRIX_HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <beans xmlns=\"http://www.springframework.org/schema/beans\"\n       \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n       \
    xsi:schemaLocation=\"http://www.springframework.org/schema/beans \
    http://www.springframework.org/schema/beans/spring-beans-3.0.xsd\">\n  \
    <bean id=\"canonicalizationPolicy\" class=\"org.archive.modules.canonicalize.RulesCanonicalizationPolicy\">\n    \
    <property name=\"rules\"><list>\n";
// Heritrix's own rules, as in the profile that it ships. A custom policy replaces them, so they are
// repeated here.
const HERITRIX_END: &str = "      <bean class=\"org.archive.modules.canonicalize.LowercaseRule\"/>\n      \
    <bean class=\"org.archive.modules.canonicalize.StripUserinfoRule\"/>\n      \
    <bean class=\"org.archive.modules.canonicalize.StripWWWNRule\"/>\n      \
    <bean class=\"org.archive.modules.canonicalize.StripSessionIDs\"/>\n      \
    <bean class=\"org.archive.modules.canonicalize.StripSessionCFIDs\"/>\n      \
    <bean class=\"org.archive.modules.canonicalize.FixupQueryString\"/>\n    \
    </list></property>\n  </bean>\n</beans>\n";
const STORMCRAWLER_HEAD: &str = "{\n  \"org.apache.stormcrawler.filtering.URLFilters\": [\n    {\n      \
    \"class\": \"org.apache.stormcrawler.filtering.regex.RegexURLNormalizer\",\n      \
    \"name\": \"webtwin URL rules\",\n      \"params\": {\n        \"urlNormalizers\": [\n          \
    { \"pattern\": \"#.*$\", \"substitution\": \"\" }";
const NORCONEX_HEAD: &str = "<urlNormalizer class=\"com.norconex.collector.http.url.impl.GenericURLNormalizer\">\n  <replacements>\n    \
     <replace><match>#.*$</match><replacement></replacement></replace>\n";

fn rule_line(row: &RuleRow, text: &mut String) {
    let RuleRow { domain, rank, scope, kind, pattern, replacement, saved, .. } = row;
    let (counts, bound) = (row.counts(), f64::from(row.counts().bound()) / 10_000.0);
    let evidence = format!("{}\t{}\t{bound:.4}\t{saved}", counts.support, counts.violations);
    writeln!(text, "{domain}\t{rank}\t{scope}\t{kind}\t{pattern}\t{replacement}\t{evidence}")
        .expect("writing to a string");
}

fn for_each_substitution(row: &RuleRow, mut write: impl FnMut(&Substitution) -> std::fmt::Result) {
    let substitutions = row.rule().map(|rule| substitutions(&rule)).unwrap_or_default();
    substitutions.iter().try_for_each(&mut write).expect("writing to a string");
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url_rules::evidence::EditCounts;

    #[test]
    fn each_crawler_gets_rules_in_its_own_form() {
        let row = RuleRow {
            domain: "a.b".into(),
            rank: 0,
            scope: "a.b/*".into(),
            kind: "path".into(),
            pattern: "/p&q/".into(),
            replacement: "/$/".into(),
            learned: EditCounts { support: 50, violations: 0 },
            verified: EditCounts { support: 40, violations: 0 },
            saved: 90,
        };
        let text =
            |name: &str, rows: &[RuleRow]| RULE_EXPORTS.iter().find(|export| export.name == name).unwrap().text(rows);
        let rows = std::slice::from_ref(&row);
        let pattern = "^(?=[a-z]+://a\\.b(?::[0-9]+)?/)([a-z]+://[^/?]+[^?]*?)/p&q/(.*)$";
        let line = "a.b\t0\ta.b/*\tpath\t/p&q/\t/$/\t90\t0\t0.9598\t90\n";
        assert_eq!(text("url-rules.tsv", rows), format!("{RULES_HEAD}{line}"));
        let line = format!("a.b\t{pattern}\t$1/\\$/$2\n");
        assert_eq!(text("url-substitutions.tsv", rows), format!("{SUBSTITUTIONS_HEAD}{line}"));
        let in_xml = pattern.replace('&', "&amp;");
        let nutch = format!("<pattern>{in_xml}</pattern><substitution>$1/\\$/$2</substitution>");
        assert!(text("regex-normalize.xml", rows).contains(&nutch));
        let heritrix = format!("value=\"{in_xml}\"/>\n        <property name=\"format\" value=\"$1/\\$/$2\"/>");
        assert!(text("heritrix-canonicalization.xml", rows).contains(&heritrix));
        assert!(text("norconex-url-normalizer.xml", rows).contains(&format!("<match>{in_xml}</match>")));
        for rows in [rows, &[]] {
            let json: serde_json::Value = serde_json::from_str(&text("stormcrawler-urlfilters.json", rows)).unwrap();
            let normalizers = &json["org.apache.stormcrawler.filtering.URLFilters"][0]["params"]["urlNormalizers"];
            assert_eq!(normalizers.as_array().unwrap().len(), 1 + rows.len());
        }
    }
}
