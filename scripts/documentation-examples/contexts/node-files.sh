# The files that the configuration of a node names.
scripts/certs.sh engine
SLUICE_CERTS_NODES=n1.example scripts/certs.sh nodes n1.example
mv nodes/n1.example.pem n1.pem
mv nodes/n1.example.key n1.key
cp nodes/authority.pem nodes-ca.pem
cp engine/authority.pem engine-ca.pem
umask 077
echo 'correct horse' >password
sluice user add alice --file users --password-file password
echo 'alice all orders.>' >permissions
echo 'staple' >engine-password
