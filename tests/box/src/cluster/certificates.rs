//! The certificate authority of one control plane and the certificates that it signs.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
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

    /// The file of a key or certificate that was made before.
    #[error(
        "failed to read {path}, which an earlier run of this box made: remove the state folder to begin \
        anew"
    )]
    Read {
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
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Debug)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new authority; writes `ca.crt` and `ca.key` into `folder`.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        let params = authority_params()?;
        let key = new_key("the authority")?;
        let certificate = params.self_signed(&key).map_err(make("the authority"))?.pem();
        let authority = Self { folder: folder.to_owned(), certificate, issuer: Issuer::new(params, key) };
        authority.write("ca.crt", &authority.certificate)?;
        authority.write("ca.key", &authority.issuer.key().serialize_pem())?;
        Ok(authority)
    }

    /// The authority whose `ca.crt` and `ca.key` are in `kept`, made now if there is none, with copies of
    /// both in `folder`, where it writes what it signs. Machines that outlive a run trust the same authority
    /// in the next.
    pub fn load_or_create(kept: &Path, folder: &Path) -> Result<Self, Error> {
        if !kept.join("ca.key").exists() {
            Self::create(kept)?;
        }
        let key = KeyPair::from_pem(&read(&kept.join("ca.key"))?).map_err(make("the authority"))?;
        let certificate = read(&kept.join("ca.crt"))?;
        // The issuer is no more than a name and a key, and the name is always the same.
        let authority =
            Self { folder: folder.to_owned(), certificate, issuer: Issuer::new(authority_params()?, key) };
        authority.write("ca.crt", &authority.certificate)?;
        authority.write("ca.key", &authority.issuer.key().serialize_pem())?;
        Ok(authority)
    }

    /// The authority's own certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A server's certificate for these names and addresses, as `<name>.crt` and `<name>.key`.
    pub fn server(&self, name: &str, addresses: &[&str]) -> Result<(), Error> {
        let addresses = addresses.iter().map(|&address| address.to_owned()).collect();
        let signed = self.sign(name, None, addresses, ExtendedKeyUsagePurpose::ServerAuth)?;
        self.write_signed(name, &signed)
    }

    /// A client's certificate for this user in this group, as `<name>.crt` and `<name>.key`.
    pub fn client(&self, name: &str, user: &str, group: &str) -> Result<(), Error> {
        let signed = self.sign(user, Some(group), Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)?;
        self.write_signed(name, &signed)
    }

    /// A server's certificate for these names and addresses, written nowhere.
    pub fn server_certificate(&self, name: &str, addresses: Vec<String>) -> Result<Signed, Error> {
        self.sign(name, None, addresses, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A key pair that signs service account tokens: `<name>.key` and `<name>.pub`; the one of `kept` if
    /// there is one, so that the tokens of an earlier run hold.
    pub fn signing_key(&self, name: &str, kept: &Path) -> Result<(), Error> {
        let path = kept.join(format!("{name}.key"));
        let key = if path.exists() {
            KeyPair::from_pem(&read(&path)?).map_err(make(name))?
        } else {
            new_key(name)?
        };
        write(&path, &key.serialize_pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())?;
        self.write(&format!("{name}.pub"), &key.public_key_pem())
    }

    /// A client's kubeconfig `<name>.kubeconfig` for this user in this group, complete in one file.
    pub fn kubeconfig(
        &self,
        name: &str,
        user: &str,
        group: Option<&str>,
        server: &str,
    ) -> Result<PathBuf, Error> {
        let file = format!("{name}.kubeconfig");
        self.write(&file, &self.kubeconfig_text(user, group, server, None)?)?;
        Ok(self.folder.join(file))
    }

    /// The text of a client's kubeconfig; `server_name` is what the server's certificate says, where that is
    /// not the name in the URL.
    pub fn kubeconfig_text(
        &self,
        user: &str,
        group: Option<&str>,
        server: &str,
        server_name: Option<&str>,
    ) -> Result<String, Error> {
        let signed = self.sign(user, group, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)?;
        let encode = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
        let mut cluster = json!({"server": server, "certificate-authority-data": encode(&self.certificate)});
        if let (Some(cluster), Some(server_name)) = (cluster.as_object_mut(), server_name) {
            cluster.insert("tls-server-name".to_owned(), server_name.into());
        }
        let identity = json!({"client-certificate-data": encode(&signed.certificate),
        "client-key-data": encode(&signed.key)});
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "box", "cluster": cluster}],
            "users": [{"name": user, "user": identity}],
            "contexts": [{"name": "box", "context": {"cluster": "box", "user": user}}],
            "current-context": "box",
        });
        serde_norway::to_string(&config).map_err(|source| Error::Kubeconfig { name: user.to_owned(), source })
    }

    fn sign(
        &self,
        name: &str,
        group: Option<&str>,
        addresses: Vec<String>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Signed, Error> {
        let mut params = params(name, group, addresses).map_err(make(name))?;
        params.extended_key_usages = vec![usage];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = new_key(name)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(make(name))?;
        Ok(Signed { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn write_signed(&self, name: &str, signed: &Signed) -> Result<(), Error> {
        self.write(&format!("{name}.crt"), &signed.certificate)?;
        self.write(&format!("{name}.key"), &signed.key)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        write(&self.folder.join(file), text)
    }
}

fn make(name: &str) -> impl FnOnce(rcgen::Error) -> Error + use<> {
    let name = name.to_owned();
    move |source| Error::Make { name, source }
}

fn new_key(name: &str) -> Result<KeyPair, Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(make(name))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Readable by this user only.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn authority_params() -> Result<CertificateParams, Error> {
    let mut params = params("freehold-box", None, Vec::new()).map_err(make("the authority"))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// Common name = the user, organisation = the group, as the API server reads client certificates.
fn params(
    name: &str,
    group: Option<&str>,
    addresses: Vec<String>,
) -> Result<CertificateParams, rcgen::Error> {
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
