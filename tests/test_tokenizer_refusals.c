/* What the files of a tokenizer may not say: each row is one fault and the whole message that names it. In the rows '
 * stands for ", so that JSON can be read. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "quotes.h"
#include "text/tokenizer.h"

typedef struct row {
    const char *text, *message;
    bert_status status;
} row;

#define ROWS(rows) rows, sizeof(rows) / sizeof *(rows)

/* `template` with `text` in the place of its @, and quotes as JSON has them. */
static size_t fill(char *json, size_t room, const char *template, const char *text) {
    const char *at = strchr(template, '@');
    const int n = snprintf(json, room, "%.*s%s%s", (int)(at - template), template, text, at + 1);
    cr_assert(n > 0 && (size_t)n < room);
    double_quotes(json);
    return (size_t)n;
}

/* Opens a good vocabulary (NULL: none) and the file that `template` and each row make; it has to say just the row's
 * message, or nothing where the row has none. */
static void each(const char *vocab, const char *name, const char *template, const row *rows, size_t n) {
    static char json[16384];
    for (size_t i = 0; i < n; i++) {
        const bert_file files[] = {{name, json, fill(json, sizeof json, template, rows[i].text)},
                                   {"vocab.txt", vocab, vocab != NULL ? strlen(vocab) : 0}};
        bert_tokenizer *tokenizer = NULL;
        bert_error err = {0};
        const bert_status status = bert_tokenizer_open_files(&tokenizer, files, vocab != NULL ? 2 : 1, NULL, &err);
        cr_expect_eq(status, rows[i].status, "%s: status %d", rows[i].text, (int)status);
        cr_expect(rows[i].message == NULL || strcmp(err.text, rows[i].message) == 0, "%s:\n  \"%s\", expected\n  \"%s\"",
                  rows[i].text, err.text, rows[i].message);
        cr_expect_eq(tokenizer != NULL, rows[i].status == BERT_OK);
        bert_tokenizer_close(&tokenizer);
    }
}

static const char member[] = "{'version':'1.0',@,'model':{'type':'WordLevel','unk_token':'u','vocab':{'u':0,'v':1}}}";

Test(refusals, added_tokens) {
    static const row rows[] = {
        {"'added_tokens':{}", "tokenizer.json: added_tokens is not a list", BERT_BAD_FILE},
        {"'added_tokens':[{}]", "tokenizer.json: an added token without an id in 0..2147483646", BERT_BAD_FILE},
        {"'added_tokens':[{'id':-1}]", "tokenizer.json: an added token without an id in 0..2147483646", BERT_BAD_FILE},
        {"'added_tokens':[{'id':2147483647}]", "tokenizer.json: an added token without an id in 0..2147483646", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0}]", "tokenizer.json: \"special\" is missing", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':0}]", "tokenizer.json: \"special\" is neither true nor false", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true}]", "tokenizer.json: an added token without content", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true,'content':'u'}]", "tokenizer.json: \"single_word\" is missing", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true,'content':'u','single_word':false}]", "tokenizer.json: \"lstrip\" is missing",
         BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true,'content':'u','single_word':false,'lstrip':true}]",
         "tokenizer.json: \"rstrip\" is missing", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true,'content':'u','single_word':false,'lstrip':true,'rstrip':true}]",
         "tokenizer.json: \"normalized\" is missing", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true,'content':1,'single_word':false,'lstrip':true,'rstrip':true,'normalized':true}]",
         "tokenizer.json: an added token's content is not a string", BERT_BAD_FILE},
        {"'added_tokens':[{'id':0,'special':true,'content':'','single_word':false,'lstrip':true,'rstrip':true,'normalized':true}]",
         "tokenizer.json: an added token with empty content", BERT_BAD_FILE},
        {"'added_tokens':[{'id':1,'special':true,'content':'u','single_word':false,'lstrip':true,'rstrip':true,'normalized':true}]",
         "tokenizer.json: added token \"u\" has id 1, but 0 in the vocabulary", BERT_BAD_FILE},
    };
    each(NULL, "tokenizer.json", member, ROWS(rows));
}

Test(refusals, lengths_decoder_version) {
    static const row rows[] = {
        {"'truncation':{}", "tokenizer.json: truncation.max_length is not a number of tokens", BERT_BAD_FILE},
        {"'truncation':{'max_length':0}", "tokenizer.json: truncation.max_length is not a number of tokens", BERT_BAD_FILE},
        {"'padding':{}", "tokenizer.json: padding.pad_id is not an id", BERT_BAD_FILE},
        {"'padding':{'pad_id':'u'}", "tokenizer.json: padding.pad_id is not an id", BERT_BAD_FILE},
        {"'padding':{'pad_id':0}", "tokenizer.json: padding.pad_token is missing", BERT_BAD_FILE},
        {"'padding':{'pad_id':0,'pad_token':0}", "tokenizer.json: padding.pad_token is not a string", BERT_BAD_FILE},
        {"'padding':{'pad_id':0,'pad_token':'u','strategy':{'Fixed':-1}}",
         "tokenizer.json: padding.strategy.Fixed is not a number of tokens", BERT_BAD_FILE},
        {"'padding':{'pad_id':1,'pad_token':'u'}", "tokenizer.json: padding has id 1, but its token has 0", BERT_BAD_FILE},
        {"'padding':{'pad_id':0,'pad_token':'u'}", NULL, BERT_OK},
        {"'padding':{'pad_id':0,'pad_token':'u','strategy':'BatchLongest'}", NULL, BERT_OK},
        {"'padding':{'pad_id':0,'pad_token':'u','strategy':{'Fixed':8}}", NULL, BERT_OK},
        {"'decoder':{}", "tokenizer.json: decoder has no type", BERT_BAD_FILE},
        {"'decoder':{'type':'ByteLevel'}", "tokenizer.json: decoder \"ByteLevel\"; WordPiece or none is supported",
         BERT_UNSUPPORTED},
        {"'decoder':{'type':'WordPiece'}", "tokenizer.json: decoder.prefix is missing", BERT_BAD_FILE},
        {"'decoder':{'type':'WordPiece','prefix':1}", "tokenizer.json: decoder.prefix is not a string", BERT_BAD_FILE},
        {"'extra':1", "tokenizer.json: unknown member \"extra\"", BERT_BAD_FILE},
    };
    static const row versions[] = {
        {"'2.0'", "tokenizer.json: version \"2.0\", expected \"1.0\"", BERT_UNSUPPORTED},
        {"1", "tokenizer.json: version 1, expected \"1.0\"", BERT_UNSUPPORTED},
    };
    each(NULL, "tokenizer.json", member, ROWS(rows));
    each(NULL, "tokenizer.json", "{'version':@}", ROWS(versions));
}

Test(refusals, model) {
    static const row rows[] = {
        {"1", "tokenizer.json: model is not an object", BERT_BAD_FILE},
        {"{'type':1}", "tokenizer.json: model.type is not a string", BERT_BAD_FILE},
        {"{'type':'BPE'}", "tokenizer.json: model type \"BPE\" (it belongs to RoBERTa, GPT-2 and Llama models); WordPiece and "
                           "WordLevel are supported", BERT_UNSUPPORTED},
        {"{'type':'Word'}", "tokenizer.json: model type \"Word\" (it belongs to no model known here); WordPiece and WordLevel "
                            "are supported", BERT_UNSUPPORTED},
        {"{}", "tokenizer.json: model.unk_token is missing", BERT_BAD_FILE},
        {"{'unk_token':null}", "tokenizer.json: model.unk_token is not a string", BERT_BAD_FILE},
        {"{'unk_token':'u'}", "tokenizer.json: model.continuing_subword_prefix is missing", BERT_BAD_FILE},
        {"{'unk_token':'u','continuing_subword_prefix':1}",
         "tokenizer.json: model.continuing_subword_prefix is not a string", BERT_BAD_FILE},
        {"{'unk_token':'u','continuing_subword_prefix':'##'}",
         "tokenizer.json: model.max_input_chars_per_word is missing", BERT_BAD_FILE},
        {"{'unk_token':'u','continuing_subword_prefix':'##','max_input_chars_per_word':-1}",
         "tokenizer.json: model.max_input_chars_per_word is not a count", BERT_BAD_FILE},
        {"{'unk_token':'u','continuing_subword_prefix':'##','max_input_chars_per_word':9}",
         "tokenizer.json: model.vocab is missing", BERT_BAD_FILE},
        {"{'type':'WordLevel','unk_token':'u','vocab':[]}", "tokenizer.json: model.vocab is not an object", BERT_BAD_FILE},
        {"{'type':'WordLevel','unk_token':'u','vocab':{'u':1.5}}",
         "tokenizer.json: model.vocab: the id of \"u\" is 1.5, expected an integer in 0..2147483646", BERT_BAD_FILE},
    };
    static const row roots[] = {{"1", "tokenizer.json: not a tokenizer: no object", BERT_BAD_FILE},
                                {"{}", "tokenizer.json: not a tokenizer: it has no model", BERT_BAD_FILE}};
    each(NULL, "tokenizer.json", "{'model':@}", ROWS(rows));
    each(NULL, "tokenizer.json", "@", ROWS(roots));
}

Test(refusals, normalizer) {
    static const row rows[] = {
        {"1", "tokenizer.json: a normalizer without a type", BERT_BAD_FILE},
        {"{'type':1}", "tokenizer.json: a normalizer without a type", BERT_BAD_FILE},
        {"{'type':'Sequence'}", "tokenizer.json: \"normalizers\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Sequence','normalizers':{}}", "tokenizer.json: \"normalizers\" is not a list", BERT_BAD_FILE},
        {"{'type':'BertNormalizer'}", "tokenizer.json: \"clean_text\" is missing", BERT_BAD_FILE},
        {"{'type':'BertNormalizer','clean_text':true}", "tokenizer.json: \"handle_chinese_chars\" is missing", BERT_BAD_FILE},
        {"{'type':'BertNormalizer','clean_text':true,'handle_chinese_chars':true}", "tokenizer.json: \"lowercase\" is missing",
         BERT_BAD_FILE},
        {"{'type':'BertNormalizer','clean_text':true,'handle_chinese_chars':true,'lowercase':true,'strip_accents':1}",
         "tokenizer.json: \"strip_accents\" is neither true nor false", BERT_BAD_FILE},
        {"{'type':'BertNormalizer','clean_text':true,'handle_chinese_chars':true,'lowercase':true}", NULL, BERT_OK},
        {"{'type':'Strip'}", "tokenizer.json: \"strip_left\" is missing", BERT_BAD_FILE},
        {"{'type':'Strip','strip_left':true}", "tokenizer.json: \"strip_right\" is missing", BERT_BAD_FILE},
        {"{'type':'Prepend'}", "tokenizer.json: \"prepend\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Prepend','prepend':1}", "tokenizer.json: prepend is not a string", BERT_BAD_FILE},
        {"{'type':'Replace'}", "tokenizer.json: \"pattern\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Replace','pattern':{}}", "tokenizer.json: \"Regex\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Replace','pattern':{'Regex':1}}", "tokenizer.json: a pattern is not a string", BERT_BAD_FILE},
        {"{'type':'Replace','pattern':{'String':'a'}}", "tokenizer.json: \"content\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Nmt'}", "tokenizer.json: normalizer \"Nmt\" (it belongs to SentencePiece models) is not supported",
         BERT_UNSUPPORTED},
        {"{'type':'X'}", "tokenizer.json: normalizer \"X\" is not supported", BERT_UNSUPPORTED},
    };
    each(NULL, "tokenizer.json", "{'normalizer':@,'model':{'type':'WordLevel','unk_token':'u','vocab':{'u':0}}}", ROWS(rows));
}

Test(refusals, pre_tokenizer) {
    static const row rows[] = {
        {"1", "tokenizer.json: a pre_tokenizer without a type", BERT_BAD_FILE},
        {"{'type':'Sequence','pretokenizers':[{}]}", "tokenizer.json: a pre_tokenizer without a type", BERT_BAD_FILE},
        {"{'type':'Punctuation','behavior':'Split'}", "tokenizer.json: behavior \"Split\"", BERT_BAD_FILE},
        {"{'type':'Punctuation'}", NULL, BERT_OK},
        {"{'type':'Digits'}", "tokenizer.json: \"individual_digits\" is missing", BERT_BAD_FILE},
        {"{'type':'Split'}", "tokenizer.json: \"pattern\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Split','pattern':{'String':'a'}}", "tokenizer.json: \"behavior\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'Split','pattern':{'String':'a'},'behavior':1}", "tokenizer.json: behavior 1", BERT_BAD_FILE},
        {"{'type':'Split','pattern':{'String':'a'},'behavior':'Isolated'}", "tokenizer.json: \"invert\" is missing",
         BERT_BAD_FILE},
        {"{'type':'CharDelimiterSplit'}", "tokenizer.json: \"delimiter\" is missing in a component", BERT_BAD_FILE},
        {"{'type':'CharDelimiterSplit','delimiter':1}", "tokenizer.json: delimiter is not a string", BERT_BAD_FILE},
        {"{'type':'CharDelimiterSplit','delimiter':''}", "tokenizer.json: delimiter is not one character", BERT_BAD_FILE},
        {"{'type':'CharDelimiterSplit','delimiter':'ab'}", "tokenizer.json: delimiter is not one character", BERT_BAD_FILE},
        {"{'type':'CharDelimiterSplit','delimiter':'\\u00e9'}", NULL, BERT_OK},
        {"{'type':'UnicodeScripts'}", "tokenizer.json: pre_tokenizer \"UnicodeScripts\" (it belongs to Unigram models) is not "
                                      "supported", BERT_UNSUPPORTED},
    };
    each(NULL, "tokenizer.json", "{'pre_tokenizer':@,'model':{'type':'WordLevel','unk_token':'u','vocab':{'u':0}}}",
         ROWS(rows));
}

/* At most 64 of a kind: 64 open, 65 do not. */
Test(refusals, many_components) {
    static const struct {
        const char *key, *list, *one, *message;
    } kinds[] = {
        {"normalizer", "normalizers", "{'type':'NFC'}", "tokenizer.json: more than 64 normalizers"},
        {"pre_tokenizer", "pretokenizers", "{'type':'Whitespace'}", "tokenizer.json: more than 64 pre-tokenizers"},
    };
    for (int i = 0; i < 2; i++) {
        for (int n = 64; n <= 65; n++) {
            char text[4096], *at = text;
            at += sprintf(at, "'%s':{'type':'Sequence','%s':[%s", kinds[i].key, kinds[i].list, kinds[i].one);
            for (int k = 1; k < n; k++) at += sprintf(at, ",%s", kinds[i].one);
            strcpy(at, "]}");
            const row rows[] = {{text, n > 64 ? kinds[i].message : NULL, n > 64 ? BERT_UNSUPPORTED : BERT_OK}};
            each(NULL, "tokenizer.json", member, ROWS(rows));
        }
    }
}

#define TEMPLATE(single, pair) \
    "{'type':'TemplateProcessing','single':[" single "],'pair':[" pair "],'special_tokens':{'u':{'ids':[0],'tokens':['u']}}}"
#define A "{'Sequence':{'id':'A','type_id':0}}"
#define B "{'Sequence':{'id':'B','type_id':1}}"
#define BAD(what) "tokenizer.json: post_processor: " what, BERT_BAD_FILE
#define TWICE "tokenizer.json: post_processor: a template that does not have each sequence exactly once", BERT_UNSUPPORTED

Test(refusals, templates) {
    static const row rows[] = {
        {"{}", BAD("it has no type")},
        {"{'type':'ByteLevel'}", "tokenizer.json: post_processor \"ByteLevel\"; TemplateProcessing and BertProcessing are "
                                 "supported", BERT_UNSUPPORTED},
        {"{'type':'RobertaProcessing'}", "tokenizer.json: post_processor \"RobertaProcessing\" (it belongs to RoBERTa and MPNet "
                                         "models); TemplateProcessing and BertProcessing are supported", BERT_UNSUPPORTED},
        {"{'type':'TemplateProcessing'}", BAD("single, pair or special_tokens is missing")},
        {"{'type':'TemplateProcessing','single':[]}", BAD("single, pair or special_tokens is missing")},
        {"{'type':'TemplateProcessing','single':[],'pair':[]}", BAD("single, pair or special_tokens is missing")},
        {"{'type':'TemplateProcessing','single':1,'pair':[],'special_tokens':{}}", BAD("a template is not a list")},
        {TEMPLATE("{}", ""), BAD("a piece that is neither Sequence nor SpecialToken")},
        {TEMPLATE("{'Sequence':{'type_id':0}}", ""), BAD("a piece without id and type_id")},
        {TEMPLATE("{'Sequence':{'id':'A'}}", ""), BAD("a piece without id and type_id")},
        {TEMPLATE("{'Sequence':{'id':'A','type_id':-1}}", ""), BAD("a piece without id and type_id")},
        {TEMPLATE("{'Sequence':{'id':'C','type_id':0}}", ""), BAD("a sequence that is neither A nor B")},
        {TEMPLATE("", A "," B), TWICE},
        {TEMPLATE(A "," A, A "," B), TWICE},
        {TEMPLATE(A "," B, A "," B), TWICE},
        {TEMPLATE(A, A), TWICE},
        {TEMPLATE(A, A "," B "," B), TWICE},
        {TEMPLATE(A, A "," B), NULL, BERT_OK},
        {TEMPLATE("{'SpecialToken':{'id':'v','type_id':0}}", ""),
         BAD("the template names a token that special_tokens does not have")},
        {TEMPLATE("{'SpecialToken':{'id':1,'type_id':0}}", ""), BAD("a special token is not a string")},
    };
    each(NULL, "tokenizer.json", "{'post_processor':@,'model':{'type':'WordLevel','unk_token':'u','vocab':{'u':0}}}",
         ROWS(rows));
}

Test(refusals, special_tokens_of_templates) {
    static const row rows[] = {
        {"{}", BAD("special_tokens needs as many ids as tokens")},
        {"{'ids':[0]}", BAD("special_tokens needs as many ids as tokens")},
        {"{'ids':1,'tokens':['u']}", BAD("special_tokens needs as many ids as tokens")},
        {"{'ids':[0],'tokens':1}", BAD("special_tokens needs as many ids as tokens")},
        {"{'ids':[0,0],'tokens':['u']}", BAD("special_tokens needs as many ids as tokens")},
        {"{'ids':['u'],'tokens':['u']}", BAD("a special token's id is not an id")},
        {"{'ids':[0],'tokens':[0]}", BAD("a special token is not a string")},
        {"{'ids':[1],'tokens':['u']}", BAD("token \"u\" has id 1, but 0 in the vocabulary")},
        {"{'ids':[0],'tokens':['u']}", NULL, BERT_OK},
    };
    each(NULL, "tokenizer.json", "{'post_processor':{'type':'TemplateProcessing','single':[{'SpecialToken':{'id':'u','type_id':0}},"
         A "],'pair':[" A "," B "],'special_tokens':{'u':@}},'model':{'type':'WordLevel','unk_token':'u','vocab':{'u':0}}}",
         ROWS(rows));
}

Test(refusals, bert_processing) {
    static const row rows[] = {
        {"'sep':['u',0]", BAD("cls and sep are each a token and its id")},
        {"'cls':{},'sep':['u',0]", BAD("cls and sep are each a token and its id")},
        {"'cls':['u'],'sep':['u',0]", BAD("cls and sep are each a token and its id")},
        {"'cls':['u',0]", BAD("cls and sep are each a token and its id")},
        {"'cls':['u','u'],'sep':['u',0]", BAD("a special token's id is not an id")},
        {"'cls':[0,0],'sep':['u',0]", BAD("a special token is not a string")},
        {"'cls':['u',0],'sep':['u',0]", NULL, BERT_OK},
    };
    each(NULL, "tokenizer.json", "{'post_processor':{'type':'BertProcessing',@},'model':{'type':'WordLevel','unk_token':'u',"
         "'vocab':{'u':0}}}", ROWS(rows));
}

/* Id 2 is another token's: a gap in the vocabulary, which the next free id would fall into. HF gives it to both. */
Test(refusals, added_token_in_a_gap) {
    static const row rows[] = {
        {"{'u':0,'v':2}", "tokenizer.json: added token \"w\" would get id 2, which another token has", BERT_BAD_FILE},
        {"{'u':0,'v':1}", NULL, BERT_OK},
    };
    each(NULL, "tokenizer.json", "{'added_tokens':[{'id':2,'special':true,'content':'w','single_word':false,'lstrip':false,"
         "'rstrip':false,'normalized':false}],'model':{'type':'WordLevel','unk_token':'u','vocab':@}}", ROWS(rows));
}

/* The file's id for it is not the next one behind the vocabulary: as in HF it gets that one; strictly, it is a fault. */
Test(refusals, added_token_further_on) {
    char json[1024];
    const bert_file file = {"tokenizer.json", json, fill(json, sizeof json, member, "'added_tokens':[{'id':7,'special':true,"
                            "'content':'w','single_word':false,'lstrip':false,'rstrip':false,'normalized':false}]")};
    const bert_tokenizer_options strict = {.size = sizeof strict, .strict = 1};
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    cr_assert_eq(bert_tokenizer_open_files(&tokenizer, &file, 1, NULL, &err), BERT_OK, "%s", err.text);
    cr_expect_eq(bert_tokenizer_id(tokenizer, "w", 1), 2);
    bert_tokenizer_close(&tokenizer);
    cr_expect_eq(bert_tokenizer_open_files(&tokenizer, &file, 1, &strict, &err), BERT_BAD_FILE);
    cr_expect_not_null(strstr(err.text, "added token \"w\" has id 7 in the file; it gets 2"), "%s", err.text);
}

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n";

#define FLAGS "'lstrip':false,'rstrip':false,'single_word':false,'normalized':false"

Test(refusals, tokenizer_config) {
    static const row rows[] = {
        {"'do_lower_case':1", "tokenizer_config.json: \"do_lower_case\" is neither true nor false", BERT_BAD_FILE},
        {"'tokenize_chinese_chars':1", "tokenizer_config.json: \"tokenize_chinese_chars\" is neither true nor false",
         BERT_BAD_FILE},
        {"'strip_accents':1", "tokenizer_config.json: \"strip_accents\" is neither true nor false", BERT_BAD_FILE},
        {"'cls_token':1", "tokenizer_config.json: cls_token is not a string", BERT_BAD_FILE},
        {"'cls_token':{}", "tokenizer_config.json: an added token without content", BERT_BAD_FILE},
        {"'cls_token':null", NULL, BERT_OK},
        {"'additional_special_tokens':[1]", "tokenizer_config.json: additional_special_tokens is not a string", BERT_BAD_FILE},
        {"'additional_special_tokens':[{}]", "tokenizer_config.json: an added token without content", BERT_BAD_FILE},
        {"'extra_special_tokens':[1]", "tokenizer_config.json: extra_special_tokens is not a string", BERT_BAD_FILE},
        {"'extra_special_tokens':{'x':'the'}", NULL, BERT_OK},
        {"'additional_special_tokens':['the']", NULL, BERT_OK},
        {"'added_tokens_decoder':[]", "tokenizer_config.json: added_tokens_decoder is not an object", BERT_BAD_FILE},
        {"'added_tokens_decoder':{'':{}}", "tokenizer_config.json: added_tokens_decoder: \"\" is not an id", BERT_BAD_FILE},
        {"'added_tokens_decoder':{'-1':{}}", "tokenizer_config.json: added_tokens_decoder: \"-1\" is not an id", BERT_BAD_FILE},
        {"'added_tokens_decoder':{'2147483647':{}}", "tokenizer_config.json: added_tokens_decoder: \"2147483647\" is not an id",
         BERT_BAD_FILE},
        {"'added_tokens_decoder':{'5':{}}", "tokenizer_config.json: \"special\" is missing", BERT_BAD_FILE},
        {"'added_tokens_decoder':{'5':{'special':true}}", "tokenizer_config.json: an added token without content", BERT_BAD_FILE},
        {"'added_tokens_decoder':{'5':{'special':true,'content':'the'," FLAGS "}}", NULL, BERT_OK},
        {"'tokenizer_class':'BertTokenizer','added_tokens_decoder':{'5':{'special':true,'content':'the'," FLAGS "}}", NULL,
         BERT_OK},
        {"'tokenizer_class':null", NULL, BERT_OK},
        {"'tokenizer_class':'PreTrainedTokenizerFast'", NULL, BERT_OK},
        {"'tokenizer_class':'TokenizersBackend'", NULL, BERT_OK},
        {"'model_max_length':1000000000000000019884624838656", NULL, BERT_OK},
    };
    each(vocab, "tokenizer_config.json", "{@}", ROWS(rows));
}

Test(refusals, older_files) {
    static const row maps[] = {
        {"[]", "special_tokens_map.json: not an object", BERT_BAD_FILE},
        {"{", "special_tokens_map.json: line 1, column 2: expected a key in quotes, found the end", BERT_BAD_FILE},
        {"{'sep_token':1}", "special_tokens_map.json: sep_token is not a string", BERT_BAD_FILE},
        {"{'additional_special_tokens':[[]]}", "special_tokens_map.json: additional_special_tokens is not a string", BERT_BAD_FILE},
    };
    static const row added[] = {
        {"[]", "added_tokens.json: not an object", BERT_BAD_FILE},
        {"{'x':'y'}", "added_tokens.json: the id of \"x\" is not an id", BERT_BAD_FILE},
        {"{'x':6}", NULL, BERT_OK},
        {"{'[MASK]':4}", NULL, BERT_OK},
    };
    static const row models[] = {{"[]", "config.json: not an object", BERT_BAD_FILE}, {"{}", NULL, BERT_OK}};
    each(vocab, "special_tokens_map.json", "@", ROWS(maps));
    each(vocab, "added_tokens.json", "@", ROWS(added));
    each(vocab, "config.json", "@", ROWS(models));
}

/* `text` as the inside of a JSON string. */
static void escape(char *json, const char *text) {
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20) json += sprintf(json, "\\u%04x", c);
        else if (c == '\\') json += sprintf(json, "\\\\");
        else *json++ = (char)c;
    }
    *json = '\0';
}

/* Opens a tokenizer that takes what matches `regex` out, and of what is left knows only `left`, by id 1. */
static bert_status open_regex(bert_tokenizer **tokenizer, const char *regex, const char *left, bert_error *err) {
    char json[8192], escaped[6000], word[64];
    escape(escaped, regex);
    escape(word, left);
    const int n = snprintf(json, sizeof json, "{\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"%s\"}},"
                           "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"%s\":1}}}", escaped, word);
    const bert_file file = {"tokenizer.json", json, (size_t)n};
    return bert_tokenizer_open_files(tokenizer, &file, 1, NULL, err);
}

/* What HF tokenizers 0.23.3 leaves of the texts: normalizers.Replace(Regex(…), "").normalize_str(…). */
Test(refusals, expressions_that_are_read) {
    static const struct {
        const char *regex, *text, *left;
    } rows[] = {
        {"[\\t\\x41\\u0042\\]C-E&]", "AtBu]CDE\t&", "tu"}, {"[\\x{75}-]", "u-v", "v"}, {"\\x7e", "~u", "u"},
        {"\\t|\\n|\\r|\\f|\\a|\\e", "u\t\n\r\f\a\033", "u"}, {"\\.", "a.u.", "au"}, {"[^u]", "aub", "u"},
        {"[^\\d]", "a1b", "1"}, {"[\\s-]", "a - b", "ab"}, {"[a\\d-]", "a1-u", "u"}, {"\\u00E9", "\xC3\xA9u", "u"},
        {"\\x{E9}", "\xC3\xA9u", "u"}, {"a+?", "aau", "u"}, {"a{1,}", "aau", "u"}, {"a{2,3}b{0}", "aaau", "u"}, {"[a-]", "a-u", "u"},
        {"[a&b]", "a&bu", "u"}, {"[\\-u]", "-uv", "v"}, {"(?<=a)u", "auu", "au"}, {"a(?=u)", "auu", "uu"},
        {"\\S", "a u", " "}, {"\\D", "a1", "1"}, {"\\W", "a-1_", "a1_"}, {".u", "auv", "v"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bert_tokenizer *tokenizer = NULL;
        bert_tokens *tokens = NULL;
        bert_error err = {0};
        const bert_text text = {rows[i].text, strlen(rows[i].text), NULL, 0};
        cr_assert_eq(open_regex(&tokenizer, rows[i].regex, rows[i].left, &err), BERT_OK, "%s: %s", rows[i].regex, err.text);
        cr_assert_eq(bert_tokenize(&tokens, tokenizer, &text, 1, NULL, &err), BERT_OK, "%s", err.text);
        const bert_encoding e = bert_tokens_at(tokens, 0, 0);
        cr_expect(e.n == 1 && e.ids[0] == 1, "%s: not \"%s\"", rows[i].regex, rows[i].left);
        bert_tokens_close(&tokens);
        bert_tokenizer_close(&tokenizer);
    }
}

Test(refusals, expressions) {
    static const struct {
        const char *regex, *what;
    } rows[] = {
        {"\\x4", "byte 1: a \\x or \\u that is cut short"}, {"\\x", "byte 1: a \\x or \\u that is cut short"},
        {"\\u12", "byte 1: a \\x or \\u that is cut short"}, {"\\x{41", "byte 1: a \\x or \\u that is cut short"},
        {"\\x{}", "byte 1: a \\x or \\u that is cut short"}, {"\\x{1234567}", "byte 1: a \\x or \\u that is cut short"},
        {"\\x80", "byte 1: a \\x or \\u that is not a character"}, {"\\uD800", "byte 1: a \\x or \\u that is not a character"},
        {"\\x{110000}", "byte 1: a \\x or \\u that is not a character"},
        {"\\x{dFfF}", "byte 1: a \\x or \\u that is not a character"},
        {"\\x4G", "byte 1: a \\x or \\u that is cut short"}, {"\\x4g", "byte 1: a \\x or \\u that is cut short"},
        {"\\x4/", "byte 1: a \\x or \\u that is cut short"}, {"\\x4:", "byte 1: a \\x or \\u that is cut short"},
        {"a\\", "byte 2: an escape that is not supported, or that PCRE2 and Oniguruma read differently"},
        {"\\q", "byte 1: an escape that is not supported, or that PCRE2 and Oniguruma read differently"},
        {"[\\q]", "byte 2: an escape that is not supported, or that PCRE2 and Oniguruma read differently"},
        {"[a-\\q]", "byte 4: an escape that is not supported, or that PCRE2 and Oniguruma read differently"},
        {"[[a]]", "byte 1: a bracket inside a bracket expression"}, {"[a&&b]", "byte 2: && inside a bracket expression"},
        {"[a", "byte 2: a bracket expression without end"}, {"[", "byte 1: a bracket expression without end"},
        {"[a-", "byte 3: a bracket expression without end"}, {"[]", "byte 1: an empty bracket expression"},
        {"[\\d-a]", "byte 3: a range that begins with a class"}, {"[--a]", "byte 2: a range that begins with -"},
        {"[b-a]", "byte 4: a range that ends before it begins"}, {"(?i)a", "byte 0: a kind of group that is not supported"},
        {")", "byte 0: a parenthesis that was not opened"}, {"(a", "byte 2: a parenthesis that is not closed"},
        {"((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))", "byte 32: groups nested too deeply"},
        {"a{2,1}", "byte 1: a brace that is not a quantifier"}, {"a{x}", "byte 1: a brace that is not a quantifier"},
        {"a{ 2}", "byte 1: a brace that is not a quantifier"}, {"a{-2}", "byte 1: a brace that is not a quantifier"},
        {"a{12345}", "byte 1: a brace that is not a quantifier"}, {"a{256,}", "byte 1: a repeat of at least 256"},
        {"a{2,x}", "byte 1: a brace that is not a quantifier"},
        {"a{2", "byte 1: a brace that is not a quantifier"}, {"a{2}+", "byte 1: a quantifier behind a quantifier"},
        {"a{2}?", "byte 1: a quantifier behind a quantifier"}, {"a++*", "byte 1: a quantifier behind a quantifier"},
        {"(a+)+", "byte 4: a repeat inside a repeat, which can take exponential time"},
        {"+", "byte 0: a quantifier with nothing before it"}, {"a|*", "byte 2: a quantifier with nothing before it"},
        {"]", "byte 0: a bracket that stands alone"}, {"}", "byte 0: a bracket that stands alone"},
        {"{", "byte 0: a bracket that stands alone"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bert_tokenizer *tokenizer = NULL;
        bert_error err = {0};
        char expected[512];
        snprintf(expected, sizeof expected, "tokenizer.json: regular expression \"%s\", %s", rows[i].regex, rows[i].what);
        cr_expect_eq(open_regex(&tokenizer, rows[i].regex, "", &err), BERT_UNSUPPORTED, "%s", rows[i].regex);
        cr_expect_str_eq(err.text, expected);
    }
}

/* Each \w is some 700 ranges. */
Test(refusals, expressions_that_become_long) {
    char regex[4000] = "";
    bert_tokenizer *tokenizer = NULL;
    bert_error err = {0};
    for (int i = 0; i < 60; i++) strcat(regex, "\\w");
    cr_expect_eq(open_regex(&tokenizer, regex, "", &err), BERT_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "too many character classes"), "%s", err.text);
}
