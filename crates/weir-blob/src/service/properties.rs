//! The properties of a service. All are stored and returned as set; only the CORS rules have an
//! effect.

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::xml::{Element, Writer};
use serde::{Deserialize, Serialize};

/// Maximum number of CORS rules.
const MOST_RULES: usize = 5;

/// A CORS rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorsRule {
    origins: Vec<String>,
    methods: Vec<String>,
    allowed: Vec<String>,
    exposed: Vec<String>,
    max_age: u32,
}

/// The properties of an account's service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Properties {
    /// CORS rules, by origin.
    pub cors: Vec<CorsRule>,
    /// Protocol version of requests without one.
    pub default_version: Option<String>,
    /// Other sections, as they were set.
    #[serde(default)]
    kept: Vec<(String, Vec<(String, String)>)>,
}

const SECTIONS: [&str; 5] =
    ["Logging", "HourMetrics", "MinuteMetrics", "DeleteRetentionPolicy", "StaticWebsite"];

impl Properties {
    /// Returns the properties changed by a document. Sections that it omits are unchanged.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidXmlDocument`], [`Code::InvalidXmlNodeValue`], or an error for a feature that
    /// Weir does not support.
    pub fn changed(&self, document: &[u8]) -> Result<Self> {
        let root = Element::root(document, "StorageServiceProperties")?;
        let mut changed = self.clone();
        for section in &root.children {
            match section.name.as_str() {
                "Cors" => changed.cors = rules(section)?,
                "DefaultServiceVersion" => {
                    let version = section.text.trim();
                    changed.default_version = (!version.is_empty()).then(|| version.to_owned());
                }
                name if SECTIONS.contains(&name) => {
                    let on = section.text_of("Enabled") == Some("true");
                    if on && name == "DeleteRetentionPolicy" {
                        return Err(Fault::not_implemented("soft delete (DeleteRetentionPolicy)"));
                    }
                    if on && name == "StaticWebsite" {
                        return Err(Fault::not_implemented("a static website"));
                    }
                    let mut flat = Vec::new();
                    flatten(section, "", &mut flat);
                    changed.kept.retain(|(own, _)| own != name);
                    changed.kept.push((name.to_owned(), flat));
                }
                _ => return Err(Code::InvalidXmlDocument.into()),
            }
        }
        Ok(changed)
    }

    /// Returns the XML document.
    #[must_use]
    pub fn document(&self) -> String {
        let mut writer = Writer::new();
        writer.within("StorageServiceProperties", |writer| {
            for section in SECTIONS {
                let kept = self.kept.iter().find(|(name, _)| name == section);
                let defaults = defaults(section);
                let fields = kept.map_or(&defaults, |(_, fields)| fields);
                writer.within(section, |writer| write_flat(writer, fields));
            }
            writer.within("Cors", |writer| self.cors.iter().for_each(|rule| rule.write(writer)));
            writer.maybe("DefaultServiceVersion", self.default_version.as_deref());
        });
        writer.done()
    }

    /// Returns the CORS headers for the response to a request.
    #[must_use]
    pub(crate) fn cors_headers(&self, head: &Head) -> Vec<(&'static str, String)> {
        let Some(origin) = head.header("origin") else { return Vec::new() };
        let mut rules = self.cors.iter();
        let Some(rule) = rules.find(|rule| rule.allows(origin, head.method.as_str())) else {
            // Another origin may be permitted, so a cache must not answer with this response.
            let vary = (!self.cors.is_empty()).then(|| ("vary", "Origin".to_owned()));
            return vary.into_iter().collect();
        };
        let any = rule.origins.iter().any(|own| own == "*");
        let mut headers = vec![(
            "access-control-allow-origin",
            if any { "*".to_owned() } else { origin.to_owned() },
        )];
        if !rule.exposed.is_empty() {
            headers.push(("access-control-expose-headers", rule.exposed.join(",")));
        }
        if !any {
            headers.push(("vary", "Origin".to_owned()));
            headers.push(("access-control-allow-credentials", "true".to_owned()));
        }
        headers
    }

    /// Returns the headers for the response to a preflight request.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidHeaderValue`] without a method, [`Code::CorsPreflightFailure`] if no rule permits
    /// it.
    pub(crate) fn preflight(&self, head: &Head) -> Result<Vec<(&'static str, String)>> {
        let origin = head.header("origin").ok_or(Code::CorsPreflightFailure)?;
        let method = "access-control-request-method";
        let method = head.header(method).ok_or_else(|| {
            let missing = Fault::from(Code::InvalidHeaderValue);
            missing.saying("A required CORS header is not present.")
        })?;
        let asked = head.header("access-control-request-headers").unwrap_or_default();
        let asked: Vec<&str> =
            asked.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let mut rules = self.cors.iter().filter(|rule| rule.allows(origin, method));
        let rule = rules.find(|rule| asked.iter().all(|name| rule.allows_header(name)));
        let rule = rule.ok_or(Code::CorsPreflightFailure)?;
        let any = rule.origins.iter().any(|own| own == "*");
        let origin = if any { "*" } else { origin };
        let mut headers = vec![
            ("access-control-allow-origin", origin.to_owned()),
            ("access-control-allow-methods", method.to_owned()),
            ("access-control-max-age", rule.max_age.to_string()),
        ];
        if !asked.is_empty() {
            headers.push(("access-control-allow-headers", asked.join(",")));
        }
        Ok(headers)
    }
}

impl CorsRule {
    fn allows(&self, origin: &str, method: &str) -> bool {
        self.origins.iter().any(|own| is_origin(own, origin))
            && self.methods.iter().any(|own| own == method)
    }

    fn allows_header(&self, name: &str) -> bool {
        self.allowed.iter().any(|own| match own.strip_suffix('*') {
            Some(start) => {
                name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
            }
            None => own.eq_ignore_ascii_case(name),
        })
    }

    fn write(&self, writer: &mut Writer) {
        writer.within("CorsRule", |writer| {
            writer.leaf("AllowedOrigins", &self.origins.join(","));
            writer.leaf("AllowedMethods", &self.methods.join(","));
            writer.leaf("AllowedHeaders", &self.allowed.join(","));
            writer.leaf("ExposedHeaders", &self.exposed.join(","));
            writer.leaf("MaxAgeInSeconds", &self.max_age.to_string());
        });
    }
}

/// Returns whether an origin is the given one. A `*` stands for subdomains, or for all origins.
fn is_origin(rule: &str, origin: &str) -> bool {
    let (rule, origin) = (rule.to_ascii_lowercase(), origin.to_ascii_lowercase());
    match rule.split_once('*') {
        None => rule == origin,
        Some((start, end)) => {
            origin.len() >= start.len() + end.len()
                && origin.starts_with(start)
                && origin.ends_with(end)
        }
    }
}

fn rules(section: &Element) -> Result<Vec<CorsRule>> {
    let list = |rule: &Element, name: &str| {
        let text = rule.text_of(name).unwrap_or_default();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let rule = |rule: &Element| {
        let max_age = rule.text_of("MaxAgeInSeconds").unwrap_or("0").parse();
        let read = CorsRule {
            origins: list(rule, "AllowedOrigins"),
            methods: list(rule, "AllowedMethods"),
            allowed: list(rule, "AllowedHeaders"),
            exposed: list(rule, "ExposedHeaders"),
            max_age: max_age.map_err(|_| Code::InvalidXmlNodeValue)?,
        };
        if rule.name != "CorsRule" || read.origins.is_empty() || read.methods.is_empty() {
            return Err(Code::InvalidXmlNodeValue.into());
        }
        Ok(read)
    };
    if section.children.len() > MOST_RULES {
        return Err(Code::InvalidXmlDocument.into());
    }
    section.children.iter().map(rule).collect()
}

/// Collects the leaves of a section with their paths.
fn flatten(element: &Element, path: &str, into: &mut Vec<(String, String)>) {
    for child in &element.children {
        let path =
            if path.is_empty() { child.name.clone() } else { format!("{path}/{}", child.name) };
        if child.children.is_empty() {
            into.push((path, child.text.trim().to_owned()));
        } else {
            flatten(child, &path, into);
        }
    }
}

fn write_flat(writer: &mut Writer, fields: &[(String, String)]) {
    let mut at = 0;
    while let Some((path, value)) = fields.get(at) {
        match path.split_once('/') {
            None => {
                writer.leaf(path, value);
                at += 1;
            }
            Some((first, _)) => {
                let prefix = format!("{first}/");
                let inner: Vec<(String, String)> = fields[at..]
                    .iter()
                    .map_while(|(path, value)| {
                        Some((path.strip_prefix(&prefix)?.to_owned(), value.clone()))
                    })
                    .collect();
                at += inner.len();
                writer.within(first, |writer| write_flat(writer, &inner));
            }
        }
    }
}

fn defaults(section: &str) -> Vec<(String, String)> {
    let fields: &[(&str, &str)] = match section {
        "Logging" => &[
            ("Version", "1.0"),
            ("Delete", "false"),
            ("Read", "false"),
            ("Write", "false"),
            ("RetentionPolicy/Enabled", "false"),
        ],
        "HourMetrics" | "MinuteMetrics" => {
            &[("Version", "1.0"), ("Enabled", "false"), ("RetentionPolicy/Enabled", "false")]
        }
        _ => &[("Enabled", "false")],
    };
    fields.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "<StorageServiceProperties><Cors><CorsRule>\
        <AllowedOrigins>http://a.example,http://b.example</AllowedOrigins>\
        <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*,range</AllowedHeaders>\
        <ExposedHeaders>etag</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>\
        </CorsRule></Cors></StorageServiceProperties>";

    #[test]
    fn omitted_sections_are_unchanged() {
        let first = Properties::default().changed(RULE.as_bytes()).unwrap();
        let second = first
            .changed(
                b"<StorageServiceProperties><HourMetrics><Version>1.0</Version>\
                  <Enabled>true</Enabled><RetentionPolicy><Enabled>true</Enabled><Days>5</Days>\
                  </RetentionPolicy></HourMetrics></StorageServiceProperties>",
            )
            .unwrap();
        assert_eq!(second.cors, first.cors);
        let document = second.document();
        assert!(document.contains("<Days>5</Days></RetentionPolicy></HourMetrics>"), "{document}");
        assert_eq!(second.changed(document.as_bytes()).unwrap().document(), document);
    }

    #[test]
    fn cors_rules_decide_preflight_requests() {
        let properties = Properties::default().changed(RULE.as_bytes()).unwrap();
        let ask = |origin: &str, method: &str, headers: &str| {
            let mut head = crate::tests::head();
            head.headers.insert("origin", origin.parse().unwrap());
            head.headers.insert("access-control-request-method", method.parse().unwrap());
            head.headers.insert("access-control-request-headers", headers.parse().unwrap());
            properties.preflight(&head).is_ok()
        };
        assert!(ask("http://a.example", "PUT", "x-ms-date, Range"));
        assert!(!ask("http://c.example", "PUT", ""));
        assert!(!ask("http://a.example", "DELETE", ""));
        assert!(!ask("http://a.example", "PUT", "authorization"));
    }

    #[test]
    fn an_origin_may_have_a_wildcard() {
        for (rule, origin, expect) in [
            ("*", "http://a.example", true),
            ("*.a.example", "x.y.A.example", true),
            ("*.a.example", "a.example", false),
            ("https://*.a.example", "https://x.a.example", true),
            ("https://*.a.example", "https://x.na.example", false),
            ("https://*.a.example", "https://.a.exampl", false),
            ("http://a.example", "http://a.example.evil", false),
        ] {
            assert_eq!(is_origin(rule, origin), expect, "{rule} {origin}");
        }
    }

    #[test]
    fn refused_preflights_have_the_codes_of_the_service() {
        let properties = Properties::default().changed(RULE.as_bytes()).unwrap();
        let refused = |headers: &[(&'static str, &str)]| {
            let mut head = crate::tests::head();
            for (name, value) in headers {
                head.headers.insert(*name, value.parse().unwrap());
            }
            properties.preflight(&head).unwrap_err()
        };
        let other = [("origin", "x"), ("access-control-request-method", "GET")];
        assert_eq!(refused(&other), Code::CorsPreflightFailure.into());
        assert_eq!(refused(&[]), Code::CorsPreflightFailure.into());
        let no_method = refused(&[("origin", "http://a.example")]);
        assert_eq!(no_method.code, Code::InvalidHeaderValue);
        assert_eq!(no_method.message(), "A required CORS header is not present.");
    }

    #[test]
    fn unsupported_features_are_refused() {
        let soft = b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
            <Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
        let fault = Properties::default().changed(soft).unwrap_err();
        assert_eq!(fault.code, Code::NotImplemented);
    }
}
