/// MQTT 5, subscriptions and the end of a connection.
let statements5Subscriptions = """
  3.8.1-1 | SUBSCRIBE's reserved flags have their values | CodecTests.refuse
  3.8.3-1 | topic filters are strings | CodecTests.refuse
  3.8.3-2 | SUBSCRIBE has a topic filter | CodecTests.refuse
  3.8.3-3 | with No Local the client's own messages aren't delivered | MessageTests.noLocal, MQTTDoorTests.aClientDoesNotGetItsOwnMessagesWhereItSaysSo, MQTTDoorTests.aClientThatSubscribesAndPublishesAtOnceDoesNotGetItsOwnMessages, MQTTDoorTests.aSessionThatGoesOnDoesNotGetItsOwnMessages
  3.8.3-4 | No Local on a shared subscription is a protocol error | SharedSubscriptionTests.shared
  3.8.3-5 | reserved bits of the options are malformed | CodecTests.refuse
  3.8.4-1 | SUBSCRIBE is answered | SubscribeTests.answers
  3.8.4-2 | SUBACK has the identifier of SUBSCRIBE | SubscribeTests.answers
  3.8.4-3 | the same filter replaces its subscription | SubscribeTests.replace
  3.8.4-4 | retained messages are sent again, and nothing is lost | SubscribeTests.replace, SubscribeTests.retainHandling
  3.8.4-5 | several filters are as several SUBSCRIBEs with one answer | SubscribeTests.answers
  3.8.4-6 | SUBACK has a reason for each filter | SubscribeTests.answers
  3.8.4-7 | the reason is the granted QoS or a failure | SubscribeTests.answers, SubscribeTests.grantedQoS, MQTTAccessTests.aFilterIsGrantedWhereATopicOfItMayBeRead
  3.8.4-8 | a message has the lower QoS of its publication and its subscription | OutboundTests.qos
  3.9.2-1 | no reason string makes SUBACK too long | InboundTests.shortAnswers
  3.9.2-2 | no user properties make SUBACK too long | InboundTests.shortAnswers | there are none
  3.9.3-1 | SUBACK's reasons have the order of the filters | SubscribeTests.answers
  3.9.3-2 | SUBACK has one of its reasons for each | CodecTests.reasons, SubscribeTests.refused
  3.10.1-1 | UNSUBSCRIBE's reserved flags have their values | CodecTests.refuse
  3.10.3-1 | topic filters are strings | CodecTests.refuse
  3.10.3-2 | UNSUBSCRIBE has a topic filter | CodecTests.refuse
  3.10.4-1 | filters are compared character by character | SubscribeTests.unsubscribe, SubscribeTests.bytes
  3.10.4-2 | nothing new is delivered | OutboundTests.late
  3.10.4-3 | what was begun at QoS 1 and 2 is completed | SubscribeTests.unsubscribeUnderWay
  3.10.4-4 | UNSUBSCRIBE is answered | SubscribeTests.unsubscribe
  3.10.4-5 | UNSUBACK has the identifier of UNSUBSCRIBE, and comes always | SubscribeTests.unsubscribe
  3.10.4-6 | several filters are as several UNSUBSCRIBEs with one answer | SubscribeTests.unsubscribe
  3.11.2-1 | no reason string makes UNSUBACK too long | SubscribeTests.unsubscribe | there is none
  3.11.2-2 | no user properties make UNSUBACK too long | SubscribeTests.unsubscribe | there are none
  3.11.3-1 | UNSUBACK's reasons have the order of the filters | SubscribeTests.unsubscribe
  3.11.3-2 | UNSUBACK has one of its reasons for each | CodecTests.reasons, SubscribeTests.unsubscribe
  3.12.4-1 | PINGREQ is answered | ConnectTests.keepAlive
  3.14.0-1 | no DISCONNECT comes before CONNACK | RefusalTests.otherFirst, RefusalTests.malformed
  3.14.1-1 | DISCONNECT's reserved flags are 0 | CodecTests.refuse, EndTests.malformed
  3.14.2-1 | DISCONNECT has one of its reasons | CodecTests.reasons
  3.14.2-2 | the server's DISCONNECT has no session expiry | CodecTests.refuse, EndTests.takenOver
  3.14.2-3 | no reason string makes DISCONNECT too long | EndTests.tooLong
  3.14.2-4 | no user properties make DISCONNECT too long | EndTests.tooLong | there are none
  3.14.4-1 | nothing is sent behind DISCONNECT | EndTests.shutDown
  3.14.4-2 | the connection is closed behind DISCONNECT | EndTests.takenOver
  3.14.4-3 | a normal disconnection discards the will | EndTests.normal
  3.15.1-1 | AUTH's reserved flags are 0 | CodecTests.refuse
  3.15.2-1 | AUTH has one of its reasons | CodecTests.refuse | the server sends none
  3.15.2-2 | no reason string makes AUTH too long | | the server sends no AUTH
  3.15.2-3 | no user properties make AUTH too long | | the server sends no AUTH
  """

/// MQTT 5, how it works.
let statements5Operation = """
  4.1.0-1 | a session isn't discarded while its connection is open | InboundTests.qos2Survives, StateTests.roundTrip
  4.1.0-2 | a session is discarded when its expiry interval has passed | EndTests.lost, MQTTDoorTests.aSessionExpires, MQTTLimitTests.aSessionEndsAtTheLongestExpiry
  4.2.0-1 | the transport is an ordered, lossless stream | CodecTests.cuts | the broker's listeners are TCP, TLS and WebSockets
  4.3.1-1 | QoS 0 is sent without DUP | OutboundTests.qos
  4.3.2-1 | QoS 1: a new message has an unused identifier | OutboundTests.identifiersComeAround
  4.3.2-2 | QoS 1: PUBLISH has it, without DUP | OutboundTests.otherDoors
  4.3.2-3 | QoS 1: it is unacknowledged until PUBACK | OutboundTests.demand, OutboundTests.fetches
  4.3.2-4 | QoS 1: PUBACK has the identifier | InboundTests.qos1
  4.3.2-5 | QoS 1: the identifier is a new message's after PUBACK | InboundTests.duplicates
  4.3.3-1 | QoS 2: a new message has an unused identifier | OutboundTests.identifiersComeAround
  4.3.3-2 | QoS 2: PUBLISH has it, without DUP | OutboundTests.qos2
  4.3.3-3 | QoS 2: PUBLISH is unacknowledged until PUBREC | OutboundTests.resume
  4.3.3-4 | QoS 2: PUBREC is answered by PUBREL, unless it refuses | OutboundTests.qos2, OutboundTests.refusedByClient
  4.3.3-5 | QoS 2: PUBREL is unacknowledged until PUBCOMP | OutboundTests.resume
  4.3.3-6 | QoS 2: PUBLISH isn't sent again behind PUBREL | OutboundTests.resume
  4.3.3-7 | QoS 2: a message that was sent doesn't expire | MessageTests.expiredUnderWay
  4.3.3-8 | QoS 2: PUBREC has the identifier | InboundTests.qos2
  4.3.3-9 | QoS 2: the identifier is a new message's after a refusal | InboundTests.notAppended
  4.3.3-10 | QoS 2: the same message is acknowledged again, and published once | InboundTests.qos2, MQTTDoorTests.aMessageThatComesAgainIsInTheLogOnce
  4.3.3-11 | QoS 2: PUBREL is answered by PUBCOMP | InboundTests.qos2
  4.3.3-12 | QoS 2: the identifier is a new message's after PUBCOMP | InboundTests.qos2
  4.3.3-13 | QoS 2: acknowledgements go on for a message that has expired | InboundTests.expired
  4.4.0-1 | what is unacknowledged is sent again on the next connection, and only then | OutboundTests.resume, OutboundTests.fetches, MQTTDoorTests.whatWasUnderWayComesAgain
  4.4.0-2 | a refusal is an acknowledgement | OutboundTests.refusedByClient, SharedSubscriptionTests.refusedByMember
  4.5.0-1 | a message is added to the sessions with matching subscriptions | OutboundTests.commits, MQTTDoorTests.messagesGoFromOneClientToAnother, DoorStoryTests.eachReaderHasEachRecordOnceInItsOrder | the log has it, and each session's cursor
  4.5.0-2 | a client acknowledges what it receives | | client
  4.6.0-1 | a client sends messages again in their order | | client
  4.6.0-2 | a client sends PUBACKs in the order of the messages | OutboundTests.commits | client; others do no harm
  4.6.0-3 | a client sends PUBRECs in the order of the messages | | client
  4.6.0-4 | a client sends PUBRELs in the order of the PUBRECs | | client
  4.6.0-5 | messages come in the order in which a client has sent them | InboundTests.qos0, OutboundTests.resume, MQTTDoorTests.nothingIsLostThroughARoughNetwork
  4.6.0-6 | every topic is ordered | OutboundTests.resume | the log has one order
  4.7.0-1 | topic names have no wildcards | CodecTests.refuse
  4.7.1-1 | # is alone in the last level | TopicTests.refusedFilters, SubscribeTests.refused, MQTTDoorTests.filtersMatchAsTheStandardSays
  4.7.1-2 | + is alone in its level | TopicTests.refusedFilters
  4.7.2-1 | wildcards in the first level don't match topics with $ | TopicTests.matching
  4.7.3-1 | names and filters aren't empty | TopicTests.refusedNames, TopicTests.refusedFilters, CodecTests.refuse
  4.7.3-2 | names and filters have no U+0000 | CodecTests.refuse
  4.7.3-3 | names and filters have at most 65,535 bytes | TopicTests.refusedNames | the broker's names have 255
  4.7.3-4 | nothing is normalised | TopicTests.matching, SubscribeTests.bytes, MQTTSessionKeyTests.clientIdentifiersAreComparedByBytes, TopicSpellingTests.namesThatAreNotComposedAreNoOtherNameAtAnyDoor
  4.8.2-1 | a shared subscription's filter begins with $share/ and a name | TopicTests.refusedFilters, SharedSubscriptionTests.shared
  4.8.2-2 | its name has no /, + and #, and a filter follows | TopicTests.refusedFilters
  4.8.2-3 | the granted QoS is respected | SharedSubscriptionTests.settles, MQTTDoorTests.sharedSubscriptionsShareTheRecords
  4.8.2-4 | QoS 2 is completed when the client is back | SharedSubscriptionTests.sharedResume
  4.8.2-5 | QoS 2 isn't given to another client when the session ends | SharedSubscriptionTests.settles
  4.8.2-6 | what a client refuses isn't given to another | SharedSubscriptionTests.refusedByMember
  4.9.0-1 | the send quota is at most the receive maximum, and not 0 | OutboundTests.demand
  4.9.0-2 | nothing is sent at QoS 1 and 2 when the quota is 0 | OutboundTests.demand
  4.9.0-3 | other packets are processed when the quota is 0 | OutboundTests.othersGoOn
  4.12.0-1 | an authentication method that isn't supported ends the connection | RefusalTests.enhancedAuthentication
  4.12.0-2 | the server asks for more by AUTH 0x18 | | enhanced authentication is refused
  4.12.0-3 | a client answers by AUTH 0x18 | | client
  4.12.0-4 | a rejection ends the connection | RefusalTests.enhancedAuthentication
  4.12.0-5 | AUTH and CONNACK have the method of CONNECT | | enhanced authentication is refused
  4.12.0-6 | without a method there is no AUTH, and none in CONNACK | ConnectTests.accept
  4.12.0-7 | without a method a client sends no AUTH | ConnectTests.strayAuthentication | client; one that does is disconnected
  4.12.1-1 | a client authenticates again by the same method | ConnectTests.strayAuthentication | client; no method was agreed on
  4.12.1-2 | a failure to authenticate again ends the connection | ConnectTests.strayAuthentication
  4.13.1-1 | malformed packets and protocol errors end the connection | EndTests.malformed, ConnectTests.serverPackets
  4.13.2-1 | reasons from 0x80 on end the connection | EndTests.takenOver, EndTests.tooLong, RefusalTests.refused
  6.0.0-1 | WebSocket messages are binary | WebSocketSessionTests.noText
  6.0.0-2 | packets may be cut anywhere by WebSocket frames | CodecTests.cuts, WebSocketDecoderTests.cuts
  6.0.0-3 | a client offers the subprotocol mqtt | WebSocketUpgradeTests.subprotocols | client; one that doesn't is refused
  6.0.0-4 | the subprotocol is mqtt | WebSocketUpgradeTests.agrees
  """
