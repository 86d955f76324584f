# The files that the configuration names.
scripts/certs.sh . broker.example.org
umask 077
echo 'correct horse' >password
sluice user add alice --file users --password-file password
echo 'alice all orders.>' >permissions
