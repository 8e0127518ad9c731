package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is the one CA of the cluster: it signs servers and clients.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      atomic.Int64 // nodes are made at the same time
	pem         []byte
}

// identity is the subject of a certificate: a user with groups, or a server with names and addresses.
type identity struct {
	user      string
	groups    []string
	names     []string
	addresses []string
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	template := a.template(pkix.Name{CommonName: "cluster-test"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a.certificate, err = x509.ParseCertificate(der)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, err
}

func (a *authority) template(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)),
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

// issue writes NAME.crt and NAME.key below dir, good for clients and, with names or addresses, for servers.
func (a *authority) issue(dir, name string, who identity) error {
	template := a.template(pkix.Name{CommonName: who.user, Organization: who.groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames = who.names
	for _, address := range who.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", who.user, err)
	}
	if err := writeKey(filepath.Join(dir, name+".key"), key); err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return os.WriteFile(filepath.Join(dir, name+".crt"), text, 0o644)
}

// serviceAccountKeys writes NAME.key and NAME.pub below dir.
func serviceAccountKeys(dir, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(filepath.Join(dir, name+".key"), key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return os.WriteFile(filepath.Join(dir, name+".pub"), text, 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// writeKubeconfig issues a client certificate into dir and writes NAME.kubeconfig with everything inline.
func (a *authority) writeKubeconfig(dir, name string, who identity) (string, error) {
	if err := a.issue(dir, name, who); err != nil {
		return "", err
	}
	read := func(suffix string) []byte {
		text, _ := os.ReadFile(filepath.Join(dir, name+suffix))
		return text
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://" + gateway, CertificateAuthorityData: a.pem}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: read(".crt"), ClientKeyData: read(".key")}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: name}
	config.CurrentContext = "test"
	path := filepath.Join(dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
