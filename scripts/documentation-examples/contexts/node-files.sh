# The files that the configuration of a node names.
scripts/certs.sh . n1.example
mv server.pem n1.pem
mv server.key n1.key
umask 077
echo 'correct horse' >password
sluice user add alice --file users --password-file password
echo 'alice all orders.>' >permissions
echo 'staple' >engine-password
cp authority.pem engine-ca.pem
