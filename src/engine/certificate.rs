//! Reads a certificate and its key, as the Secret of `spec.tls` holds them. Pure.

use std::fmt;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest as _, Sha256};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::rfc5912::{
    ECDSA_WITH_SHA_256, ECDSA_WITH_SHA_384, SHA_256_WITH_RSA_ENCRYPTION, SHA_384_WITH_RSA_ENCRYPTION,
    SHA_512_WITH_RSA_ENCRYPTION,
};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::time::Time;

/// The signatures of certificates that the connection of a client can be bound to, as PostgreSQL and the
/// operator compute it (RFC 5929, "tls-server-end-point"): a client that may bind its connection cannot
/// connect where the server shows a certificate with a signature that names no hash, such as Ed25519.
const BINDING: [ObjectIdentifier; 5] = [
    SHA_256_WITH_RSA_ENCRYPTION,
    SHA_384_WITH_RSA_ENCRYPTION,
    SHA_512_WITH_RSA_ENCRYPTION,
    ECDSA_WITH_SHA_256,
    ECDSA_WITH_SHA_384,
];

/// A certificate that fits its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The file: the certificate, and those of its issuers.
    pub text: String,
    /// The certificate, and those of its issuers, as a server shows them.
    pub chain: Vec<CertificateDer<'static>>,
    /// When it began to be good.
    pub not_before: Timestamp,
    /// When it expires.
    pub not_after: Timestamp,
    /// Whether connections can be bound to it (`SCRAM-SHA-256-PLUS`).
    pub can_be_bound_to: bool,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "certificate {}", self.fingerprint())
    }
}

/// Why the content of a Secret is no certificate with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(test, derive(strum::EnumIter))]
pub enum CertificateFault {
    /// No certificate is in the file, or one that cannot be read.
    #[error("tls.crt holds no certificate in PEM, or one that cannot be read")]
    Certificate,
    /// No key is in the file.
    #[error("tls.key holds no private key in PEM, or an encrypted one")]
    Key,
    /// It is of another kind than those that are known.
    #[error("the key in tls.key is neither RSA (2048 to 8192 bits), ECDSA (P-256, P-384, P-521) nor Ed25519")]
    KeyType,
    /// The key is another certificate's.
    #[error("the key in tls.key is not that of the first certificate in tls.crt")]
    OtherKey,
}

/// Reads the files.
pub fn read(certificates: &[u8], key: &[u8]) -> Result<Certificate, CertificateFault> {
    let text = std::str::from_utf8(certificates).map_err(|_| CertificateFault::Certificate)?.to_owned();
    // The engine shows no text with a NUL.
    if text.contains('\0') {
        return Err(CertificateFault::Certificate);
    }
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(|_| CertificateFault::Certificate)?;
    // A server does not start with a file of which it cannot read all.
    let parsed: Result<Vec<_>, _> = chain.iter().map(|it| x509_cert::Certificate::from_der(it)).collect();
    let parsed = parsed.map_err(|_| CertificateFault::Certificate)?.into_iter().next();
    let parsed = parsed.ok_or(CertificateFault::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateFault::Key)?;
    let key = any_supported_type(&key).map_err(|_| CertificateFault::KeyType)?;
    let of_certificate = parsed.tbs_certificate.subject_public_key_info.to_der();
    let of_certificate = of_certificate.map(SubjectPublicKeyInfoDer::from).ok();
    if of_certificate.is_none() || key.public_key() != of_certificate {
        return Err(CertificateFault::OtherKey);
    }
    Ok(Certificate {
        text,
        chain,
        not_before: at(parsed.tbs_certificate.validity.not_before),
        not_after: at(parsed.tbs_certificate.validity.not_after),
        can_be_bound_to: BINDING.contains(&parsed.signature_algorithm.oid),
    })
}

fn at(time: Time) -> Timestamp {
    let second = i64::try_from(time.to_unix_duration().as_secs()).ok();
    second.and_then(|second| Timestamp::from_second(second).ok()).unwrap_or(Timestamp::MAX)
}

impl Certificate {
    /// The SHA-256 of the certificates, one after the other, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        self.chain.iter().for_each(|it| hash.update(it));
        HEXLOWER.encode(&hash.finalize())
    }

    /// Whether it names this host, so that a client that connects to the host and checks its name goes on
    /// (RFC 6125). The common name does not count.
    pub fn names(&self, host: &str) -> bool {
        let parsed = self.chain.first().and_then(|leaf| ParsedCertificate::try_from(leaf).ok());
        let named = parsed.zip(ServerName::try_from(host).ok());
        named.is_some_and(|(parsed, name)| verify_server_name(&parsed, &name).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::{assert_eq, assert_ne};
    use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm, date_time_ymd};

    use super::*;

    /// A certificate of this name, signed by its own key, and the key.
    fn pair(algorithm: &'static SignatureAlgorithm) -> (String, String) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = CertificateParams::new(vec!["orders.shop.svc".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2021, 2, 3), date_time_ymd(2031, 2, 3));
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    fn read_both(certificates: &str, key: &str) -> Result<Certificate, CertificateFault> {
        read(certificates.as_bytes(), key.as_bytes())
    }

    #[test]
    fn a_certificate_says_when_it_expires_and_whom_it_names() {
        let (certificate, key) = pair(&rcgen::PKCS_ECDSA_P256_SHA256);
        let read = read_both(&certificate, &key).unwrap();
        let life = [read.not_before, read.not_after].map(|at| at.to_string());
        assert_eq!(life, ["2021-02-03T00:00:00Z", "2031-02-03T00:00:00Z"]);
        assert!(read.can_be_bound_to);
        assert_eq!((read.names("orders.shop.svc"), read.names("orders")), (true, false));
        assert_eq!((read.text.as_str(), read.fingerprint().len()), (certificate.as_str(), 64));
    }

    #[test]
    fn the_first_certificate_of_a_chain_is_the_servers() {
        let ((first, key), (second, _)) =
            (pair(&rcgen::PKCS_ECDSA_P384_SHA384), pair(&rcgen::PKCS_ECDSA_P256_SHA256));
        let alone = read_both(&first, &key).unwrap();
        let chain = read_both(&format!("{first}{second}"), &key).unwrap();
        assert_eq!((chain.chain[0].clone(), chain.chain.len()), (alone.chain[0].clone(), 2));
        assert_ne!(chain.fingerprint(), alone.fingerprint(), "a server shows all of them");
        assert_eq!(read_both(&format!("{second}{first}"), &key), Err(CertificateFault::OtherKey));
    }

    #[test]
    fn no_connection_can_be_bound_to_a_signature_that_names_no_hash() {
        for (algorithm, expected) in [
            (&rcgen::PKCS_ED25519, false),
            (&rcgen::PKCS_ECDSA_P384_SHA384, true),
            (&rcgen::PKCS_ECDSA_P256_SHA256, true),
        ] {
            let (certificate, key) = pair(algorithm);
            assert_eq!(read_both(&certificate, &key).unwrap().can_be_bound_to, expected, "{algorithm:?}");
        }
    }

    #[test]
    fn files_that_are_no_pair_are_a_fault_each_of_its_own() {
        let (certificate, key) = pair(&rcgen::PKCS_ECDSA_P256_SHA256);
        let (_, other) = pair(&rcgen::PKCS_ECDSA_P256_SHA256);
        let block = |name: &str| format!("-----BEGIN {name}-----\nAAAA\n-----END {name}-----\n");
        for (certificates, key, expected) in [
            ("", key.as_str(), CertificateFault::Certificate),
            ("no certificate", &key, CertificateFault::Certificate),
            (&key, &key, CertificateFault::Certificate),
            (&block("CERTIFICATE"), &key, CertificateFault::Certificate),
            (&format!("{certificate}{}", block("CERTIFICATE")), &key, CertificateFault::Certificate),
            (&certificate, "", CertificateFault::Key),
            (&certificate, &certificate, CertificateFault::Key),
            (&certificate, &block("ENCRYPTED PRIVATE KEY"), CertificateFault::Key),
            (&certificate, &block("PRIVATE KEY"), CertificateFault::KeyType),
            (&certificate, &other, CertificateFault::OtherKey),
        ] {
            assert_eq!(read_both(certificates, key), Err(expected), "{certificates} {key}");
        }
        for bad in [&[0xff][..], format!("\0\n{certificate}").as_bytes()] {
            assert_eq!(read(bad, key.as_bytes()), Err(CertificateFault::Certificate));
        }
    }
}
