//! The certificate authority of one control plane and the certificates that it signs.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

/// A box lives for days at most; a clock that is a little wrong must not matter.
const VALID_BEFORE: Duration = Duration::days(1);
const VALID_AFTER: Duration = Duration::days(365);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key or certificate itself.
    #[error("failed to make the certificate of {name}")]
    Make {
        /// Whose certificate.
        name: String,
        /// What the library said.
        #[source]
        source: rcgen::Error,
    },

    /// Its file.
    #[error("failed to write {path}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// The text of a kubeconfig.
    #[error("failed to write the kubeconfig of {name}")]
    Kubeconfig {
        /// Whose kubeconfig.
        name: String,
        /// What the library said.
        #[source]
        source: serde_norway::Error,
    },
}

/// An authority that keeps what it makes in a folder.
pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority; writes `ca.crt` and `ca.key` into `folder`.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Make { name: "the authority".to_owned(), source };
        let mut params = params("freehold-box", None, Vec::new()).map_err(failed)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        let authority = Self { folder: folder.to_owned(), issuer };
        authority.write("ca.crt", &authority.issuer.pem())?;
        authority.write("ca.key", &authority.issuer.key().serialize_pem())?;
        Ok(authority)
    }

    /// A server's certificate for these names and addresses, as `<name>.crt` and `<name>.key`.
    pub fn server(&self, name: &str, addresses: &[&str]) -> Result<(), Error> {
        let addresses = addresses.iter().map(|&address| address.to_owned()).collect();
        let (certificate, key) = self.sign(name, None, addresses, ExtendedKeyUsagePurpose::ServerAuth)?;
        self.write(&format!("{name}.crt"), &certificate)?;
        self.write(&format!("{name}.key"), &key)
    }

    /// A key pair that signs service account tokens: `<name>.key` and `<name>.pub`.
    pub fn signing_key(&self, name: &str) -> Result<(), Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|source| Error::Make { name: name.to_owned(), source })?;
        self.write(&format!("{name}.key"), &key.serialize_pem())?;
        self.write(&format!("{name}.pub"), &key.public_key_pem())
    }

    /// A client's kubeconfig `<name>.kubeconfig` for this user in this group, complete in one file.
    pub fn kubeconfig(&self, name: &str, user: &str, group: Option<&str>, server: &str) -> Result<PathBuf, Error> {
        let (certificate, key) = self.sign(user, group, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)?;
        let encode = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "box", "cluster": {"server": server, "certificate-authority-data": encode(&self.issuer.pem())}}],
            "users": [{"name": user, "user": {"client-certificate-data": encode(&certificate), "client-key-data": encode(&key)}}],
            "contexts": [{"name": "box", "context": {"cluster": "box", "user": user}}],
            "current-context": "box",
        });
        let text = serde_norway::to_string(&config).map_err(|source| Error::Kubeconfig { name: name.to_owned(), source })?;
        let file = format!("{name}.kubeconfig");
        self.write(&file, &text)?;
        Ok(self.folder.join(file))
    }

    fn sign(
        &self,
        name: &str,
        group: Option<&str>,
        addresses: Vec<String>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<(String, String), Error> {
        let failed = |source| Error::Make { name: name.to_owned(), source };
        let mut params = params(name, group, addresses).map_err(failed)?;
        params.extended_key_usages = vec![usage];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = self.folder.join(file);
        std::fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| Error::Write { path, source })
    }
}

/// Common name = the user, organisation = the group, as the API server reads client certificates.
fn params(name: &str, group: Option<&str>, addresses: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(addresses)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    let now = OffsetDateTime::now_utc();
    params.not_before = now - VALID_BEFORE;
    params.not_after = now + VALID_AFTER;
    Ok(params)
}
