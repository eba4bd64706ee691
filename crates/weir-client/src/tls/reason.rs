//! The reasons why TLS fails, in words.

use rustls::{AlertDescription, CertificateError, Error};

/// Returns the reason of an error, in words where the library has only the name of a variant.
#[must_use]
pub fn reason(error: &Error) -> String {
    let words = match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no trusted authority has signed the peer's certificate"
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "a signature of the peer is wrong; most likely another authority of the same name as the \
             trusted one has signed its certificate"
        }
        Error::InconsistentKeys(_) => "the key does not belong to the certificate",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the peer asks for a certificate: put client-cert.pem and client-key.pem beside ca-cert.pem"
        }
        Error::AlertReceived(AlertDescription::UnknownCA) => {
            "the peer does not trust the authority that has signed the certificate"
        }
        Error::AlertReceived(AlertDescription::DecryptError) => {
            "the peer rejected a signature; most likely it trusts another authority of the same name"
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
        check(invalid(CertificateError::UnknownIssuer), "no trusted authority has signed");
        check(invalid(CertificateError::BadSignature), "of the same name as the trusted one");
        check(Error::InconsistentKeys(InconsistentKeys::KeyMismatch), "does not belong to");
        check(Error::AlertReceived(AlertDescription::CertificateRequired), "put client-cert.pem");
        check(Error::AlertReceived(AlertDescription::UnknownCA), "does not trust the authority");
        check(Error::AlertReceived(AlertDescription::DecryptError), "rejected a signature");
        // Others keep the words of the library.
        check(invalid(CertificateError::NotValidForName), "NotValidForName");
    }
}
