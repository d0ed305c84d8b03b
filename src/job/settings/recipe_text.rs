//! Recipes in settings: a name, or words of the form `part:value`.

use crate::languages::{NONE, stemmer, stop_words};

/// Parses `plain`, `weighted`, or parts that change one of them. The first word may be the name;
/// the default is `plain`.
pub(super) fn parse<R>(
    text: &str,
    presets: [R; 2],
    set: fn(&mut R, &str) -> Option<()>,
    example: &str,
) -> Result<R, String> {
    let [plain, weighted] = presets;
    let mut parts = text.split_whitespace().peekable();
    let mut recipe = match parts.next_if(|part| ["plain", "weighted"].contains(part)) {
        Some("weighted") => weighted,
        _ => plain,
    };
    for part in parts {
        set(&mut recipe, part).ok_or_else(|| {
            format!("{part:?} is not part of a recipe, expected plain, weighted, or parts such as {example}")
        })?;
    }
    Ok(recipe)
}

/// Returns the text of a recipe, which [`parse`] accepts. Equal recipes have equal texts.
pub(super) fn text<R: Default + PartialEq>(recipe: &R, weighted: &R, parts: fn(&R) -> Vec<String>) -> String {
    let plain = R::default();
    if recipe == &plain {
        return "plain".into();
    }
    if recipe == weighted {
        return "weighted".into();
    }
    let differ: Vec<String> = parts(recipe)
        .into_iter()
        .zip(parts(&plain))
        .filter(|(part, plain)| part != plain)
        .map(|(part, _)| part)
        .collect();
    differ.join(" ")
}

/// Returns a language that has a list of stop words, or `none`.
pub(super) fn with_stop_words(language: &str) -> Option<String> {
    (language == NONE || stop_words(language).is_some()).then(|| language.to_owned())
}

/// Returns a language that has a stemmer, or `none`.
pub(super) fn with_stemmer(language: &str) -> Option<String> {
    (language == NONE || stemmer(language).is_some()).then(|| language.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::settings::{FeatureRecipe, VectorRecipe};

    #[test]
    fn recipes_are_parsed_as_written() {
        for (text, written) in [
            ("", "plain"),
            ("plain", "plain"),
            ("weighted", "weighted"),
            ("phrases:2 weights:log idf", "weighted"),
            ("weighted stemming:en", "phrases:2 weights:log idf stemming:en"),
            ("idf  least:0", "idf least:0"),
        ] {
            assert_eq!(text.parse::<FeatureRecipe>().unwrap().to_string(), written);
            assert_eq!(written.parse::<FeatureRecipe>(), text.parse::<FeatureRecipe>());
        }
        let recipe: VectorRecipe = "weighted components:5 damping:0.5 stop-words:ja".parse().unwrap();
        assert_eq!((recipe.dims, recipe.damping, recipe.depth), (5, 0.5, 5));
        assert_eq!(recipe.to_string().parse::<VectorRecipe>().unwrap(), recipe);
    }

    #[test]
    fn invalid_part_of_a_recipe_is_named() {
        for malformed in ["phrases", "phrases:0", "phrases:17", "idf:1", "stemming:english", "weights:most", "heavy"] {
            let error = malformed.parse::<FeatureRecipe>().unwrap_err();
            assert!(error.starts_with(&format!("{malformed:?} is not part of a recipe")), "{error}");
        }
        for malformed in ["components:0", "components:65", "damping:1.5", "depth:9", "children:none", "stop-words:xx"] {
            assert!(malformed.parse::<VectorRecipe>().is_err(), "{malformed}");
        }
    }
}
