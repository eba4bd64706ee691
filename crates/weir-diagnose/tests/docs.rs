//! The documentation of the rules.

use weir_diagnose::rules::RULES;

const DOCS: &str = include_str!("../../../docs/DIAGNOSIS.md");

#[test]
fn every_rule_is_explained_once_and_by_its_name() {
    for rule in RULES {
        let head = format!("\n### {}\n", rule.name);
        assert_eq!(DOCS.matches(&head).count(), 1, "{}", rule.name);
        assert!(DOCS.contains(&rule.id.to_string()), "{}: {}", rule.name, rule.id);
    }
    let heads = DOCS.lines().filter_map(|line| line.strip_prefix("### "));
    for head in heads {
        assert!(RULES.iter().any(|rule| rule.name == head), "there is no rule {head}");
    }
}

#[test]
fn numbers_and_names_are_unique_and_the_urls_lead_there() {
    for (index, rule) in RULES.iter().enumerate() {
        let same =
            |other: &&weir_diagnose::rules::Rule| other.id == rule.id || other.name == rule.name;
        assert_eq!(RULES[index + 1..].iter().find(same).map(|other| other.name), None);
        let url = rule.finding("", "").source.url;
        assert_eq!(url, format!("docs/DIAGNOSIS.md#{}", rule.name));
        assert!((1..=255).contains(&u16::from(rule.priority)));
    }
}
