# The user stays root, where root runs the examples: in a namespace of theirs there is no other.
printf '%s\n' 'listener 1884 127.0.0.1' 'allow_anonymous true' 'user root' >mosquitto.conf
