/// MQTT 5, chapters 1, 2 and the opening of a connection.
let statements5Opening = """
  1.5.4-1 | strings are well-formed UTF-8 without surrogates | CodecTests.refuse
  1.5.4-2 | strings have no U+0000 | CodecTests.refuse
  1.5.4-3 | U+FEFF is a character, and stays | CodecTests.byteOrderMark
  1.5.5-1 | variable byte integers have the fewest bytes | CodecTests.refuse, CodecTests.lengths
  1.5.7-1 | both strings of a pair are strings | CodecTests.refuse
  2.1.3-1 | reserved flags have their values | CodecTests.refuse, CodecTests.write
  2.2.1-2 | PUBLISH at QoS 0 has no packet identifier | CodecTests.read, OutboundTests.qos
  2.2.1-3 | a client's new packets have identifiers that aren't 0 and aren't in use | CodecTests.refuse | client; 0 is refused
  2.2.1-4 | the server's PUBLISH has an identifier that isn't 0 and isn't in use | OutboundTests.identifiersComeAround, OutboundTests.qos
  2.2.1-5 | acknowledgements have the identifier of their PUBLISH | InboundTests.qos1, InboundTests.qos2, OutboundTests.qos2
  2.2.1-6 | SUBACK and UNSUBACK have the identifier of their request | SubscribeTests.answers, SubscribeTests.unsubscribe
  2.2.2-1 | no properties are a length of 0 | CodecTests.write
  3.1.0-1 | the first packet is CONNECT | RefusalTests.otherFirst, CodecTests.opening
  3.1.0-2 | a second CONNECT is a protocol error | ConnectTests.second
  3.1.2-1 | another protocol name ends the connection | RefusalTests.otherVersions
  3.1.2-2 | another version ends the connection | RefusalTests.otherVersions
  3.1.2-3 | the reserved connect flag is 0 | CodecTests.refuse, RefusalTests.malformed
  3.1.2-4 | Clean Start discards a session | ConnectTests.sessions, MQTTRestartTests.aSessionThatWasEndedIsGone
  3.1.2-5 | without Clean Start a session goes on | ConnectTests.sessions, OutboundTests.resume, MQTTDoorTests.aSessionThatIsKeptGetsWhatItIsOwed
  3.1.2-6 | without a session there is a new one | ConnectTests.sessions
  3.1.2-7 | the will is stored with the session | EndTests.lost
  3.1.2-8 | the will is published when the connection has ended and its delay is over | EndTests.lost, EndTests.withWill, MQTTDoorTests.aWillIsPublishedUnlessTheClientSaysGoodbye, MQTTDoorTests.aWillWithADelayWaitsForTheClient
  3.1.2-9 | a will's fields are there | CodecTests.refuse, CodecTests.read
  3.1.2-10 | the will is removed when it is published or the client disconnects | EndTests.normal, MQTTDoorTests.aWillIsPublishedUnlessTheClientSaysGoodbye, HostileClientTests.willsOfDeadClientsByTheThousandArePublishedAndLeaveNothing
  3.1.2-11 | without a will its QoS is 0 | CodecTests.refuse
  3.1.2-12 | a will's QoS is 0, 1 or 2 | CodecTests.refuse, CodecTests.read
  3.1.2-13 | without a will its retain flag is 0 | CodecTests.refuse
  3.1.2-14 | a will that isn't retained is published as such | EndTests.willMessage
  3.1.2-15 | a retained will is published as such | EndTests.willMessage
  3.1.2-16 | without its flag there is no user name | CodecTests.refuse
  3.1.2-17 | with its flag there is a user name | CodecTests.refuse, CodecTests.read
  3.1.2-18 | without its flag there is no password | CodecTests.refuse
  3.1.2-19 | with its flag there is a password | CodecTests.refuse, CodecTests.read
  3.1.2-20 | a client that has nothing to send sends PINGREQ | | client
  3.1.2-21 | a client uses the server's keep alive time | | client
  3.1.2-22 | one and a half of the keep alive time without a packet ends the connection | ConnectTests.keepAlive, MQTTDoorTests.pingsAreAnsweredAndSilenceIsNot, MQTTLimitTests.aHalfOpenClientIsDroppedAndItsWillPublished
  3.1.2-23 | a session with an expiry interval is stored | EndTests.lost, StateTests.roundTrip, MQTTDoorTests.aSessionThatIsKeptGetsWhatItIsOwed, MQTTRestartTests.aSessionGoesOnWithTheNextBroker
  3.1.2-24 | no packet is longer than the client takes | EndTests.tooLong, OutboundTests.tooLarge, ConnectTests.connackTooLong
  3.1.2-25 | a message that is too long is left out as if it had been sent | OutboundTests.tooLarge
  3.1.2-26 | no topic alias is beyond the client's maximum | MessageTests.aliases
  3.1.2-27 | without a maximum there are no topic aliases | MessageTests.aliases
  3.1.2-28 | no response information where none is requested | ConnectTests.noResponseInformation
  3.1.2-29 | no reason strings and user properties where none are requested | InboundTests.noProblems
  3.1.2-30 | a client that authenticates sends nothing else before CONNACK | | client; enhanced authentication is refused
  3.1.3-1 | the payload's fields have their order | CodecTests.read
  3.1.3-2 | the client identifier names the session | EndTests.takenOver, MQTTDoorTests.aSessionThatIsKeptGetsWhatItIsOwed, MQTTDoorTests.aSessionIsTakenOver, MQTTSessionKeyTests.clientIdentifiersAreComparedByBytes
  3.1.3-3 | the client identifier is there, first | CodecTests.read, CodecTests.refuse
  3.1.3-4 | the client identifier is a string | CodecTests.refuse
  3.1.3-5 | identifiers of 1 to 23 letters and digits are allowed | ConnectTests.identifiers
  3.1.3-6 | an empty identifier is replaced by a unique one | ConnectTests.emptyIdentifier, MQTTSessionKeyTests.emptyIdentifiersBecomeUniqueOnes
  3.1.3-7 | the client is told its identifier | ConnectTests.connackProperties
  3.1.3-8 | an identifier that is refused ends the connection | ConnectTests.identifiers
  3.1.3-9 | a client that is back before the delay is over stops its will | EndTests.withWill, MQTTDoorTests.aWillWithADelayWaitsForTheClient
  3.1.3-10 | the will's user properties keep their order | EndTests.willMessage
  3.1.3-11 | the will's topic is a string | CodecTests.refuse
  3.1.3-12 | the user name is a string | CodecTests.refuse
  3.1.4-1 | a CONNECT that isn't in order ends the connection | RefusalTests.malformed
  3.1.4-2 | a CONNECT that fails a check ends the connection | RefusalTests.refused, MQTTRefusalTests.aClientTooManyIsTold
  3.1.4-3 | the connection that a client has had is ended with 0x8E | EndTests.takenOver, MQTTDoorTests.aSessionIsTakenOver
  3.1.4-4 | Clean Start is processed | ConnectTests.sessions
  3.1.4-5 | CONNACK accepts the client | ConnectTests.accept
  3.1.4-6 | nothing is processed behind a CONNECT that is refused | RefusalTests.earlyRefused
  3.2.0-1 | CONNACK is the first packet | ConnectTests.connackFirst
  3.2.0-2 | there is one CONNACK | ConnectTests.connackFirst
  3.2.2-1 | reserved acknowledge flags are 0 | CodecTests.write
  3.2.2-2 | a clean start has no session present | ConnectTests.sessions
  3.2.2-3 | session present says whether there is one | ConnectTests.sessions
  3.2.2-4 | a client without a session ends a connection that has one | | client
  3.2.2-5 | a client discards its session where the server has none | | client
  3.2.2-6 | a refusal has no session present | RefusalTests.refused
  3.2.2-7 | a refusal ends the connection | RefusalTests.refused
  3.2.2-8 | CONNACK has one of its reasons | RefusalTests.refused, CodecTests.reasons
  3.2.2-9 | a maximum QoS below 2 is told | ConnectTests.connackProperties
  3.2.2-10 | subscriptions at any QoS are accepted | SubscribeTests.grantedQoS
  3.2.2-11 | a client doesn't exceed the maximum QoS | InboundTests.notServed | client; one that does is disconnected
  3.2.2-12 | a will beyond the maximum QoS refuses the client | RefusalTests.willLimits
  3.2.2-13 | a retained will refuses the client where retained messages aren't served | RefusalTests.willLimits
  3.2.2-14 | a client sends no retained messages where they aren't served | InboundTests.notServed | client; one that does is disconnected
  3.2.2-15 | a client doesn't exceed the maximum packet size | EndTests.packetTooLarge | client; one that does is disconnected
  3.2.2-16 | an assigned identifier is told, and is new | ConnectTests.connackProperties, MQTTSessionKeyTests.emptyIdentifiersBecomeUniqueOnes
  3.2.2-17 | a client's topic aliases don't exceed the maximum | InboundTests.badAliases | client; one that does is disconnected
  3.2.2-18 | a client sets no topic aliases without a maximum | InboundTests.badAliases | client; one that does is disconnected
  3.2.2-19 | no reason string makes CONNACK too long | RefusalTests.shortRefusal
  3.2.2-20 | no user properties make CONNACK too long | RefusalTests.shortRefusal | there are none
  3.2.2-21 | a client uses the server's keep alive time | | client
  3.2.2-22 | without one the server uses the client's | ConnectTests.keepAlive, MQTTLimitTests.aClientWithAShorterKeepAliveTimeKeepsItsOwn
  """

/// MQTT 5, messages and their acknowledgements.
let statements5Messages = """
  3.3.1-1 | DUP is set for a message that is sent again | OutboundTests.resume
  3.3.1-2 | DUP isn't set at QoS 0 | CodecTests.refuse, OutboundTests.qos
  3.3.1-3 | DUP of an incoming message isn't passed on | OutboundTests.qos, InboundTests.duplicates
  3.3.1-4 | there is no QoS 3 | CodecTests.refuse
  3.3.1-5 | a retained message replaces the topic's | InboundTests.retained, MQTTDoorTests.retainedMessagesComeToLateSubscribers, MQTTRetainedTests.manyMessagesComeBack
  3.3.1-6 | an empty retained message removes the topic's, and is published | InboundTests.retained, MQTTRetainedTests.aMessageWithoutAPayloadRemovesIt
  3.3.1-7 | an empty message isn't retained | InboundTests.retained, MQTTRetainedTests.aMessageWithoutAPayloadRemovesIt
  3.3.1-8 | a message that isn't retained changes no retained message | InboundTests.qos0
  3.3.1-9 | retain handling 0 sends retained messages | SubscribeTests.retainHandling
  3.3.1-10 | retain handling 1 sends them for a new subscription | SubscribeTests.retainHandling
  3.3.1-11 | retain handling 2 doesn't send them | SubscribeTests.retainHandling
  3.3.1-12 | without retain as published RETAIN isn't set | MessageTests.retain
  3.3.1-13 | with retain as published RETAIN is as published | MessageTests.retain
  3.3.2-1 | the topic name is first, and a string | CodecTests.read, CodecTests.refuse
  3.3.2-2 | a topic name has no wildcards | CodecTests.refuse
  3.3.2-3 | a message's topic matches the filter of the subscription | TopicTests.model, TopicTests.matching
  3.3.2-4 | the payload format comes unaltered | MessageTests.payloadFormat
  3.3.2-5 | a message that has expired isn't delivered | MessageTests.expiry
  3.3.2-6 | the expiry interval goes down by the time of waiting | MessageTests.expiry
  3.3.2-7 | topic aliases end with their connection | InboundTests.aliasesEnd
  3.3.2-8 | no topic alias is 0 | CodecTests.refuse, MessageTests.aliases
  3.3.2-9 | a client's topic aliases don't exceed the maximum | InboundTests.badAliases | client; one that does is disconnected
  3.3.2-10 | a client accepts all aliases within its maximum | | client
  3.3.2-11 | the server's aliases don't exceed the client's maximum | MessageTests.aliases
  3.3.2-12 | all aliases within the maximum are accepted | InboundTests.aliases
  3.3.2-13 | the response topic is a string | CodecTests.refuse
  3.3.2-14 | the response topic has no wildcards | CodecTests.refuse
  3.3.2-15 | the response topic comes unaltered | MessageTests.properties, MessageTests.responseTopics
  3.3.2-16 | the correlation data come unaltered | MessageTests.properties
  3.3.2-17 | user properties come unaltered | MessageTests.properties
  3.3.2-18 | user properties keep their order | MessageTests.properties
  3.3.2-19 | the content type is a string | CodecTests.refuse
  3.3.2-20 | the content type comes unaltered | MessageTests.properties
  3.3.4-1 | a message is answered as its QoS says | InboundTests.qos0, InboundTests.qos1, InboundTests.qos2
  3.3.4-2 | the highest QoS of overlapping subscriptions is respected | MessageTests.overlapping
  3.3.4-3 | messages have the identifiers of overlapping subscriptions | MessageTests.overlapping
  3.3.4-4 | a single copy has the identifiers of all | | each subscription gets a copy of its own
  3.3.4-5 | each copy has the identifier of its subscription | MessageTests.overlapping, MessageTests.subscriptionIdentifier
  3.3.4-6 | a client's message has no subscription identifier | CodecTests.refuse
  3.3.4-7 | a client doesn't exceed the receive maximum | InboundTests.receiveMaximum | client; one that does is disconnected
  3.3.4-8 | a client doesn't delay other packets at its receive maximum | | client
  3.3.4-9 | the server doesn't exceed the client's receive maximum | OutboundTests.demand, MQTTDoorTests.noMoreIsUnderWayThanTheClientTakes
  3.3.4-10 | the server doesn't delay other packets at the receive maximum | OutboundTests.othersGoOn
  3.4.2-1 | PUBACK has one of its reasons | CodecTests.reasons, InboundTests.notAppended
  3.4.2-2 | no reason string makes PUBACK too long | InboundTests.shortAnswers
  3.4.2-3 | no user properties make PUBACK too long | InboundTests.shortAnswers | there are none
  3.5.2-1 | PUBREC has one of its reasons | CodecTests.reasons, InboundTests.notAppended
  3.5.2-2 | no reason string makes PUBREC too long | InboundTests.shortAnswers
  3.5.2-3 | no user properties make PUBREC too long | InboundTests.shortAnswers | there are none
  3.6.1-1 | PUBREL's reserved flags have their values | CodecTests.refuse, CodecTests.write
  3.6.2-1 | PUBREL has one of its reasons | CodecTests.reasons, OutboundTests.strayAcknowledgements
  3.6.2-2 | no reason string makes PUBREL too long | OutboundTests.strayAcknowledgements | there is none
  3.6.2-3 | no user properties make PUBREL too long | OutboundTests.strayAcknowledgements | there are none
  3.7.2-1 | PUBCOMP has one of its reasons | CodecTests.reasons, InboundTests.strayRelease
  3.7.2-2 | no reason string makes PUBCOMP too long | InboundTests.strayRelease | there is none
  3.7.2-3 | no user properties make PUBCOMP too long | InboundTests.strayRelease | there are none
  """
