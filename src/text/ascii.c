/* text/ascii.c: classes of ASCII characters, the same whatever the normalizer's options are. */
#include "text/ascii.h"

enum { O = BERT_ASCII_OTHER, W = BERT_ASCII_WORD, P = BERT_ASCII_PUNCT, S = BERT_ASCII_SPACE };

/* VT, FF and 1C..1F are not here as spaces: clean_text deletes them. */
const uint8_t bert_ascii_classes[256] = {
    O, O, O, O, O, O, O, O, O, S, S, O, O, S, O, O, /* 00: tab, LF, CR */
    O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* 10 */
    S, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, /* 20: space ! " # $ % & ' ( ) * + , - . / */
    W, W, W, W, W, W, W, W, W, W, P, P, P, P, P, P, /* 30: digits : ; < = > ? */
    P, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, /* 40: @ A.. */
    W, W, W, W, W, W, W, W, W, W, W, P, P, P, P, P, /* 50: ..Z [ \ ] ^ _ */
    P, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, /* 60: ` a.. */
    W, W, W, W, W, W, W, W, W, W, W, P, P, P, P, O, /* 70: ..z { | } ~ DEL */
};
