/* Tickets as text. */
#include "base_ticket.h"

#include "base_banned.h"

void hf__ticket_format(const struct hf__ticket *ticket, char text[HF_TICKET_SIZE])
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof ticket->bits; i++) {
        text[2 * i] = hex[ticket->bits[i] >> 4];
        text[2 * i + 1] = hex[ticket->bits[i] & 15];
    }
    text[HF_TICKET_SIZE - 1] = '\0';
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool hf__ticket_parse(const char *text, struct hf__ticket *ret_ticket)
{
    struct hf__ticket ticket;

    if (text == NULL || strlen(text) != 2 * sizeof ticket.bits)
        return false;
    for (size_t i = 0; i < sizeof ticket.bits; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ticket.bits[i] = (unsigned char)(high << 4 | low);
    }
    *ret_ticket = ticket;
    return true;
}
