//! The reasons why TLS fails, in words.

use rustls::{AlertDescription, CertificateError, Error};

/// Returns the reason of an error, in words where the library has only the name of a variant.
#[must_use]
pub fn reason(error: &Error) -> String {
    let words = match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "none of the trusted authorities has signed the other side's certificate"
        }
        // The trusted authority has the name of the one that signed, and another key.
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "an authority of the same name as the trusted one has signed the other side's certificate, \
             but with another key"
        }
        Error::InconsistentKeys(_) => "the key does not belong to the certificate",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the other side asks for a certificate, and there is none"
        }
        Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
            "the other side does not trust the authority that has signed the certificate"
        }
        _ => return error.to_string(),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::InconsistentKeys;

    #[test]
    fn errors_without_words_get_some() {
        let check = |error: Error, expect: &str| {
            let words = reason(&error);
            assert!(words.contains(expect), "{error:?}: {words}");
        };
        let invalid = Error::InvalidCertificate;
        check(invalid(CertificateError::UnknownIssuer), "none of the trusted authorities");
        check(invalid(CertificateError::BadSignature), "with another key");
        check(Error::InconsistentKeys(InconsistentKeys::KeyMismatch), "does not belong to");
        check(Error::AlertReceived(AlertDescription::CertificateRequired), "and there is none");
        check(Error::AlertReceived(AlertDescription::UnknownCA), "does not trust the authority");
        check(Error::AlertReceived(AlertDescription::DecryptError), "does not trust the authority");
        // Others keep the words of the library.
        check(invalid(CertificateError::NotValidForName), "NotValidForName");
    }
}
